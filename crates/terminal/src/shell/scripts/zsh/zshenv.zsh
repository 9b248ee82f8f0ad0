# zsh reads this for ~/.zshenv, because ZDOTDIR leads here. It loads the person's file with
# their ZDOTDIR, and sees to it that zsh comes back here once more, for .zshrc.

typeset -g __ostler_nonce="${OSTLER_SHELL_NONCE-}" __ostler_here="$ZDOTDIR"
unset OSTLER_SHELL_NONCE
if [[ -n "${OSTLER_SHELL_ZDOTDIR+x}" ]]; then
    ZDOTDIR="$OSTLER_SHELL_ZDOTDIR"
    unset OSTLER_SHELL_ZDOTDIR
else
    unset ZDOTDIR
fi
if [[ -r "${ZDOTDIR-$HOME}/.zshenv" ]]; then
    source "${ZDOTDIR-$HOME}/.zshenv"
fi
if [[ -o interactive && -o rcs ]]; then
    if [[ -n "${ZDOTDIR+x}" ]]; then
        typeset -g __ostler_zdotdir="$ZDOTDIR" __ostler_exported=0
        [[ "${(t)ZDOTDIR}" == *export* ]] && __ostler_exported=1
    fi
    # Ours alone: what is started meanwhile is the person's.
    unset ZDOTDIR
    typeset -g ZDOTDIR="$__ostler_here"
fi
unset __ostler_here
