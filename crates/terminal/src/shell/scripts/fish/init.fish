# Makes an interactive fish (3.2 or later) tell where prompts and commands begin and end, by
# OSC 133 and OSC 7. Read after the person's own files.
#
#   D;status, OSC 7   first thing after a command
#   A ... B           around the prompt
#   C                 last thing before a command runs

set -g __ostler_nonce $OSTLER_SHELL_NONCE
set -eg OSTLER_SHELL_NONCE
set -g __ostler_told 0

function __ostler_tell --argument-names code
    printf '\e]133;D%s;ostler=%s\a\e]7;file://%s%s\a' "$code" $__ostler_nonce \
        "$hostname" (string escape --style=url -- $PWD | string join %0A) >/dev/tty
    set -g __ostler_told 1
end

function __ostler_start --on-event fish_preexec
    printf '\e]133;C;ostler=%s\a' $__ostler_nonce >/dev/tty
end

function __ostler_end --on-event fish_postexec
    __ostler_tell ";$status"
end

# A command line that could not be read never ran; it stays at the prompt.
function __ostler_error --on-event fish_posterror
    __ostler_tell ';127'
end

# One that was given up: the prompt is painted anew, without an event of its own.
function __ostler_cancel --on-event fish_cancel
    __ostler_tell ''
    set -g __ostler_told 0
    printf '\e]133;A;ostler=%s\a' $__ostler_nonce >/dev/tty
end

function __ostler_prompt --on-event fish_prompt
    set -l last $status
    test $__ostler_told = 1; or __ostler_tell ''
    set -g __ostler_told 0
    __ostler_wrap
    printf '\e]133;A;ostler=%s\a' $__ostler_nonce >/dev/tty
    return $last
end

# Puts the end mark after the prompt, also after one that was set since.
function __ostler_wrap
    functions -q fish_prompt; or return
    string match -q '*__ostler_*' -- (functions fish_prompt); and return
    functions -e __ostler_own_prompt
    functions -c fish_prompt __ostler_own_prompt
    function fish_prompt --description 'the prompt, and where it ends'
        __ostler_own_prompt
        printf '\e]133;B;ostler=%s\a' $__ostler_nonce
    end
end

# Fish drops tabs that are pasted.
bind -M paste \t 'commandline -i \t'
