# Makes an interactive bash (4.4 or later) tell where prompts and commands begin and end, by
# OSC 133 and OSC 7. Read instead of ~/.bashrc, which it loads as usual.
#
#   D;status, OSC 7    first thing after a command, before the person's own PROMPT_COMMAND
#   D;status, A ... B  within PS1: the status once more, for when PROMPT_COMMAND was lost
#   A;k=s ... B        within PS2
#   C                  by PS0, last thing before a command runs
#
# The prompts hold a reference to the nonce, never the nonce: prompts may be exported.
# Hooks write to the terminal itself, and what xtrace would tell of them to nobody.

__ostler_nonce=${OSTLER_SHELL_NONCE-}
unset OSTLER_SHELL_NONCE
__ostler_told=0
__ostler_cwd=
__ostler_cwd_url=
# 0: a command may come, 1: one runs, 2: none ran yet. Of several lines that are typed
# together only the first tells: an array, as arithmetic is all that PS0 can change.
# Without the hooks, PS1 lets every line tell.
__ostler_ran=2
__ostler_c=($'\e]133;C;ostler='"$__ostler_nonce"$'\a')
__ostler_c[2]=${__ostler_c[0]}
__ostler_ps0='${__ostler_c[__ostler_ran]-}${0:$((__ostler_ran=1,0)):0}'
__ostler_ps1='\[\e]133;D;$?;ostler=${__ostler_nonce-}\a\e]133;A;ostler=${__ostler_nonce-}\a${0:$((__ostler_ran=${PROMPT_COMMAND[1]+__ostler_ran+}0)):0}\]'
__ostler_ps2='\[\e]133;A;k=s;ostler=${__ostler_nonce-}\a\]'
__ostler_end='\[\e]133;B;ostler=${__ostler_nonce-}\a\]'

# The working directory, percent-encoded into __ostler_cwd_url.
__ostler_url() {
    [[ "$PWD" == "$__ostler_cwd" ]] && return 0
    local LC_ALL=C path="$PWD" char code
    local -i at
    __ostler_cwd_url=
    for ((at = 0; at < ${#path}; at++)); do
        char=${path:at:1}
        case $char in
        [a-zA-Z0-9/._~-]) ;;
        *)
            builtin printf -v code '%d' "'$char"
            builtin printf -v char '%%%02X' "$((code & 255))"
            ;;
        esac
        __ostler_cwd_url+=$char
    done
    __ostler_cwd=$PWD
    return 0
}

# Tells that a command ended with status $1, and where the shell is now; before the first
# command there is no status.
__ostler_tell() {
    local status=";$1"
    [[ "$__ostler_ran" == 2 ]] && status=
    __ostler_url
    builtin printf '\e]133;D%s;ostler=%s\a\e]7;file://%s%s\a' \
        "$status" "$__ostler_nonce" "${HOSTNAME-}" "$__ostler_cwd_url" >/dev/tty
    __ostler_told=1
    __ostler_ran=0
    return 0
}

# First of PROMPT_COMMAND.
__ostler_first() {
    local status=$?
    __ostler_tell "$status"
    # Before 5.1 the commands after this one would not find the status by themselves.
    [[ -n "$__ostler_array" || $- == *e* ]] && return 0
    return "$status"
}

# Last of PROMPT_COMMAND: the person's own may have set new prompts.
__ostler_last() {
    local status=$?
    [[ "$__ostler_told" == 1 ]] || __ostler_tell "$status"
    __ostler_told=0
    PS0="${PS0-}"
    PS0=${PS0//"$__ostler_ps0"/}$__ostler_ps0
    PS1=${PS1-}
    PS1=${PS1//"$__ostler_ps1"/}
    PS1=$__ostler_ps1${PS1//"$__ostler_end"/}$__ostler_end
    PS2=${PS2-}
    PS2=${PS2//"$__ostler_ps2"/}
    PS2=$__ostler_ps2${PS2//"$__ostler_end"/}$__ostler_end
    return 0
}

__ostler_literal=${OSTLER_SHELL_LITERAL-}
unset OSTLER_SHELL_LITERAL
[[ -r ~/.bashrc ]] && source ~/.bashrc
[[ -n "$__ostler_literal" ]] && set +o histexpand 2>/dev/null
unset __ostler_literal

__ostler_array=
if ((BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1))); then
    __ostler_array=1
    PROMPT_COMMAND=(
        '{ __ostler_first; } 2>/dev/null'
        "${PROMPT_COMMAND[@]}"
        '{ __ostler_last; } 2>/dev/null'
    )
else
    PROMPT_COMMAND=$'{ __ostler_first; } 2>/dev/null\n'"${PROMPT_COMMAND-}"$'\n{ __ostler_last; } 2>/dev/null'
fi
