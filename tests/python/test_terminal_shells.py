"""Shell sessions: a command typed into a running shell, its end, status, directory and exact output; and nothing
that a person does to a shell makes a call hang."""

import asyncio
import time

import pytest

from harness import Terminals, named, until
from harness.terminal import ShellRunResult

pytestmark = pytest.mark.anyio

SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture(params=SHELLS)
def kind(request):
    return request.param


async def finished(session, script, **options):
    """A command that must come to its end."""
    result = await session.run(script, **options)
    assert result.end == "finished", result
    return result


async def test_status_directory_and_exactly_its_output(each_installation, kind):
    async with Terminals.connect(each_installation) as terminals:
        shell = await terminals.shell(kind)
        result = await finished(shell, "echo one; echo two >&2")
        assert (result.output, result.exit_code, result.cwd) == ("one\ntwo", 0, str(each_installation.work))
        assert (await finished(shell, "false")).exit_code == 1
        result = await finished(shell, "cd /tmp")
        assert (result.output, result.exit_code, result.cwd) == ("", 0, "/tmp")
        assert (await finished(shell, "pwd")).output == "/tmp"
        assert (await finished(shell, "sh -c 'exit 42'")).exit_code == 42
        assert (await finished(shell, "no-such-command-here")).exit_code == 127
        result = await finished(shell, "printf 'no newline at the end'")
        assert result.output == "no newline at the end", result
        assert (await finished(shell, "printf ''")).output == ""
        result = await finished(shell, "seq 1 3 | tac")
        assert result.output == "3\n2\n1"
        assert (await finished(shell, "sh -c 'kill -9 $$'")).exit_code == 137


async def test_a_shells_state_stays(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "set -x KEPT yes" if kind == "fish" else "export KEPT=yes")
        assert (await finished(shell, "sh -c 'echo $KEPT'")).output == "yes"
        weird = installation.work / "a dir ä'\"%41;\\"
        weird.mkdir()
        installation.give(installation.work)
        result = await finished(shell, "cd a\\ dir*")
        assert result.cwd == str(weird), result
        assert (await finished(shell, "true")).cwd == str(weird)


async def test_several_lines_are_one_command(installation, kind):
    script = {
        "bash": "for n in 1 2 3\ndo\n  echo n $n\ndone\n(exit 4)",
        "zsh": "for n in 1 2 3\ndo\n  echo n $n\ndone\n(exit 4)",
        "fish": "for n in 1 2 3\n  echo n $n\nend\nsh -c 'exit 4'",
    }[kind]
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        result = await finished(shell, script)
        assert "n 1\nn 2\nn 3" in result.output and result.exit_code == 4, result
        assert (await finished(shell, "echo after")).output == "after", "nothing of it is left"


async def test_here_documents_quotes_and_odd_characters(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        result = await finished(shell, "cat <<'END'\n$HOME `x` \"y\"\n\ttab\nEND")
        assert result.output == "$HOME `x` \"y\"\n\ttab", result
        assert (await finished(shell, "echo 'a!b' \"ä 漢 😀\"")).output == "a!b ä 漢 😀"
        assert (await finished(shell, "# only a comment")).output == ""
        assert (await finished(shell, "echo a; echo b # c")).output == "a\nb"
        assert (await finished(shell, "  echo indented  ")).output == "indented"


async def test_a_command_that_takes_its_time_goes_on(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        begin = time.monotonic()
        result = await shell.run("echo begun; sleep 300", wait_ms=500)
        assert result.end == "running" and time.monotonic() - begin < 5, result
        assert "begun" in result.output
        busy = await shell.call("pty_run", script="echo no")
        assert busy.is_error, "it runs something else"
        await shell.keys("ctrl-c")
        result = await until_run(shell, "echo yes")
        assert result.output == "yes"


async def until_run(shell, script, seconds=10):
    """Runs it as soon as the shell is back at its prompt."""
    deadline = time.monotonic() + seconds
    while True:
        reply = await shell.call("pty_run", script=script)
        if not reply.is_error:
            return ShellRunResult(reply)
        assert time.monotonic() < deadline, reply


@pytest.mark.parametrize("asks", ["read -r x", "python3 -q -i -S -E"])
async def test_a_command_that_asks_is_reported_and_answered(installation, asks):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        result = await shell.run(asks, wait_ms=20_000)
        if asks.startswith("read"):
            # The shell itself reads: nobody can tell its question from its prompt, so the
            # wait is bounded and honest.
            assert result.end in ("prompt", "silent"), result
            await shell.line("answer")
            assert (await until_run(shell, "echo $x")).output == "answer"
            return
        assert result.end == "prompt", result
        await shell.line("6*7")
        await shell.shows(r"^42$")
        await shell.keys("ctrl-d")
        assert (await until_run(shell, "echo back")).output == "back"


async def test_an_incomplete_command_is_reported(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        result = await shell.run("echo 'open", wait_ms=10_000)
        assert result.end in ("incomplete", "silent"), result
        await shell.keys("ctrl-c")
        assert (await until_run(shell, "echo closed")).output == "closed"


@pytest.mark.parametrize("ends", ["exit 7", "exec sh -c 'exit 7'", "kill -9 $$"])
async def test_the_shell_itself_ends(installation, ends):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        result = await shell.run(ends, wait_ms=10_000)
        assert result.end == "shell_ended", result
        status = await shell.ended()
        assert status["exit_code"] == (None if "kill" in ends else 7)
        refused = await shell.call("pty_run", script="echo no")
        assert refused.is_error, refused


async def test_exec_of_another_program_is_no_hang(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        begin = time.monotonic()
        result = await shell.run("exec python3 -q -i -S -E", wait_ms=10_000)
        assert result.end == "shell_ended" and result.reply.value("status") == "running", result
        assert result.reply.value("why") != "exit", "the session goes on"
        assert time.monotonic() - begin < 9, "found out, not waited out"
        await shell.line("raise SystemExit(3)")
        assert (await shell.ended())["exit_code"] == 3


async def test_exec_of_another_program_at_the_command_line_says_that_it_runs(installation):
    shell = installation.cli("shell", "-d", "bash").stdout.decode().strip()
    done = installation.cli("exec", shell, "exec sleep 300", check=False)
    assert done.returncode == 125 and b"another program took the place of the shell" in done.stderr, done
    assert installation.rest("GET", f"/api/v1/executions/{shell}")["status"] == "running"
    installation.cli("stop", "--force", shell)


async def test_an_offset_after_the_end_is_refused(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        reply = await shell.call("pty_run", offset=10**15)
        assert reply.is_error and "after the end of the output" in reply.text, reply


BROKEN = {
    "bash": ["PS1=; PROMPT_COMMAND=; trap - DEBUG", "PS1='$ '; unset PROMPT_COMMAND", "exec bash --norc"],
    "zsh": ["precmd_functions=(); preexec_functions=(); PS1=x; PROMPT=y", "exec zsh -f"],
    "fish": ["functions -e fish_prompt; function fish_prompt; echo '> '; end", "exec fish --no-config"],
}


@pytest.mark.parametrize(("kind", "breaks"), [(k, b) for k in SHELLS for b in BROKEN[k]])
async def test_a_broken_prompt_is_no_hang(installation, kind, breaks):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        begin = time.monotonic()
        result = await shell.run(breaks, wait_ms=15_000)
        assert result.end in ("finished", "silent", "prompt"), result
        again = await shell.call("pty_run", script="echo still here", wait_ms=15_000)
        assert time.monotonic() - begin < 25
        if not again.is_error and ShellRunResult(again).end == "finished":
            assert "still here" in ShellRunResult(again).output
        await shell.line("echo by keys $((40+2))" if kind != "fish" else "echo by keys 42")
        await shell.shows(r"^by keys 42$")


async def test_a_stopped_child_is_no_hang(installation):
    async with Terminals.connect(installation) as terminals:
        for kind in ("bash", "zsh"):
            shell = await terminals.shell(kind)
            result = await shell.run("sh -c 'echo up; kill -STOP $$'", wait_ms=15_000)
            assert result.end == "finished" and result.exit_code in (145, 147, 148), result
            assert (await finished(shell, "kill -9 %1; echo ok")).exit_code == 0
            await shell.close()


async def test_output_cannot_pretend_to_be_the_shell(installation):
    fake = r"printf '\033]133;D;0\007\033]133;A\007$ \033]133;B\007'; echo after; (exit 9)"
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        result = await finished(shell, fake)
        assert result.exit_code == 9 and "after" in result.output
        result = await finished(shell, r"env | grep -i ostler; echo; (exit 8)")
        assert result.exit_code == 8
        uuid = installation.json("info", shell.id)["uuid"]
        nonce = nonce_of(installation, uuid)
        assert nonce and nonce not in result.output, "its secret is not in the environment"
        assert nonce not in (await finished(shell, "export -p; python3 -c 'import os; print(os.environ)'")).output


def nonce_of(installation, uuid):
    import json

    spec = json.loads((installation.state / "executions" / uuid / "spec.json").read_text())
    return spec.get("spec", spec)["shell"]["nonce"]


async def test_the_persons_own_files_are_loaded(each_installation):
    home = each_installation.dir / "home"
    (home / ".bashrc").write_text("MINE=bashrc\nPS1='mine> '\nalias greet='echo hi'\n")
    (home / ".zshrc").write_text("MINE=zshrc\nPS1='mine> '\nalias greet='echo hi'\n")
    (home / ".zshenv").write_text("ENVMINE=zshenv\n")
    (home / ".config").mkdir()
    (each_installation.dir / "config" / "fish").mkdir()
    (each_installation.dir / "config" / "fish" / "config.fish").write_text("set MINE fishrc\nalias greet='echo hi'\n")
    (home / ".config" / "fish").mkdir()
    (home / ".config" / "fish" / "config.fish").write_text("set MINE fishrc\nalias greet='echo hi'\n")
    each_installation.give(each_installation.dir)
    async with Terminals.connect(each_installation) as terminals:
        for kind, mine in [("bash", "bashrc"), ("zsh", "zshrc"), ("fish", "fishrc")]:
            shell = await terminals.shell(kind)
            assert (await finished(shell, "echo $MINE")).output == mine
            assert (await finished(shell, "greet")).output == "hi"
            if kind == "zsh":
                assert (await finished(shell, "echo $ENVMINE $ZDOTDIR")).output.strip() == "zshenv"
            if kind != "fish":
                await shell.shows(r"^mine>")
            await shell.close()


async def test_a_person_types_and_the_state_is_known_all_the_same(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        await shell.line("cd /usr")
        await shell.line("echo typed")
        await shell.shows(r"^typed$")
        result = await until_run(shell, "pwd")
        assert (result.output, result.cwd) == ("/usr", "/usr")
        assert (await finished(shell, "(exit 3)" if kind != "fish" else "sh -c 'exit 3'")).exit_code == 3


async def test_commands_after_half_a_line_was_typed(installation):
    """A person left text on the line: the command is not appended to it."""
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        await shell.type("echo half ")
        await shell.shows(r"echo half$")
        result = await shell.call("pty_run", script="echo whole")
        if not result.is_error:
            assert ShellRunResult(result).output in ("whole", "half echo whole"), result


async def test_much_output_stays_exact_and_in_its_budget(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        result = await finished(shell, "seq 1 200000")
        assert len(result.reply.text) <= 20_000
        assert result.output.startswith("1\n2\n3\n") and "200000" in result.output
        result = await finished(shell, "echo small")
        assert result.output == "small"


async def test_resized_and_clear_and_full_screen_programs_leave_the_state_alone(installation):
    (installation.work / "long").write_text("".join(f"{n}\n" for n in range(500)))
    installation.give(installation.work)
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        await shell.resize(132, 43)
        assert (await finished(shell, "stty size; tput cols")).output == "43 132\n132"
        await finished(shell, "clear")
        result = await shell.run("less long", wait_ms=10_000)
        assert result.end in ("prompt", "running"), result
        await shell.type("q")
        assert (await until_run(shell, "echo back")).output == "back"


async def test_a_background_job_does_not_hold_the_answer(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        begin = time.monotonic()
        result = await finished(shell, "sleep 300 & echo started")
        assert time.monotonic() - begin < 10 and "started" in result.output
        assert (await finished(shell, "kill %1; wait; echo gone")).exit_code == 0
        await shell.close()


async def test_scripts_that_are_refused(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        for script in ["", "   ", "\n"]:
            reply = await shell.call("pty_run", script=script)
            assert reply.is_error and reply.code == "value_error", (script, reply)
        reply = await shell.call("pty_run", script="x" * (128 * 1024 + 1))
        assert reply.is_error and reply.code == "value_error", reply
        plain = await terminals.start("cat")
        reply = await plain.call("pty_run", script="echo no")
        assert reply.is_error, "it is no shell with integration"
        assert (await finished(shell, "echo fine")).output == "fine"
        long = "echo " + "y" * 5000
        assert (await finished(shell, long)).output == "y" * 5000


async def test_two_runs_at_once_do_not_mix(installation):
    import asyncio

    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        replies = await asyncio.gather(*(
            shell.call("pty_run", script=f"echo begin {n}; sleep 0.2; echo end {n}") for n in range(4)
        ))
        result = [ShellRunResult(reply) for reply in replies if not reply.is_error]
        assert result, "one of them was run"
        for one in result:
            lines = one.output.split("\n")
            assert len(lines) == 2 and lines[0].removeprefix("begin") == lines[1].removeprefix("end"), result


async def test_everything_of_a_shell_ends_at_close(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "sleep 301.77 & (setsid sleep 301.77 &) ; disown -a")
        until(lambda: len(named("sleep 301.77")) == 2, what="both")
        begin = time.monotonic()
        await shell.close()
        assert time.monotonic() - begin < 4, "an interactive bash goes at once"
        until(lambda: not named("sleep 301.77"), 5, "the end of everything")


#: Configuration files as people write them; commands are still reported.
TASTES = {
    "bash": [
        "set -u", "set -o vi", "set -e", "PS1=", "PROMPT_COMMAND='echo from the prompt'", "PROMPT_COMMAND=(true 'history -a')",
        "trap 'x=$BASH_COMMAND' DEBUG", "PS0='%started%'", "shopt -s extdebug", "set -o noclobber; alias cd='cd -P' printf=false echo='echo'",
        "PS1='\\[\\e]0;t\\a\\]$(exit 3)two\\nlines> '", "unset HISTFILE; HISTCONTROL=ignorespace", "stty -echo", "bind 'set enable-bracketed-paste off'",
        "IFS=:", "LANG=C; LC_ALL=C", "cd /; echo noise; sleep 0.3", "set -x",
    ],
    "zsh": [
        "setopt nounset", "bindkey -v", "setopt errexit", "PROMPT=", "precmd() { print from precmd }", "preexec() { print from preexec }",
        "setopt ksharrays", "setopt shwordsplit noglob", "unsetopt promptsp promptcr", "RPROMPT='right'", "setopt extendedglob nomatch; alias -g G='| grep'",
        "stty -echo", "PROMPT=$'two\\nlines> '", "setopt xtrace",
    ],
    "fish": [
        "fish_vi_key_bindings", "function fish_prompt; echo -n 'two\n> '; end", "function fish_right_prompt; echo right; end", "set -g fish_greeting hello",
        "function fish_preexec --on-event fish_preexec; echo before; end", "abbr echo 'echo abbreviated'",
    ],
}


@pytest.mark.parametrize(("kind", "taste"), [(kind, taste) for kind, tastes in TASTES.items() for taste in tastes])
async def test_a_person_has_a_taste(installation, kind, taste):
    home = installation.dir / "home"
    config = installation.dir / "config"
    for file in (home / f".{kind}rc", home / ".config" / kind / f"config.{kind}", config / kind / f"config.{kind}"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(taste + "\n")
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        result = await shell.run("echo one; sh -c 'exit 3'", wait_ms=15_000)
        if taste in ("set -e", "setopt errexit"):
            assert result.end == "shell_ended", "as the person asked for"
            return
        assert (result.end, result.exit_code) == ("finished", 3), result
        assert "one" in result.output.split("\n"), result
        result = await finished(shell, "echo two words")
        assert "two words" in result.output.split("\n") and result.exit_code == 0, result
        await shell.close()


#: More than a terminal takes while nothing reads it, in lines so long that fish draws them soon.
LONG_SCRIPT = "\n".join(f"echo {'x' * 1_000} >> ran" for _ in range(40))


async def at_prompt(shell):
    """Waits until the shell reads at its prompt: fish draws it for a while after the end of a command."""
    read = await shell.must("pty_read", view="screen", until="prompt", wait_ms=20_000)
    assert read.value("shell")["state"] == "prompt", read


def unfinished_inputs(installation):
    return [path for path in installation.executions() if (path / "input.unfinished").exists()]


@pytest.mark.limit(120)
@pytest.mark.parametrize("restarted", [False, True], ids=["same-daemon", "next-daemon"])
async def test_a_script_that_was_cut_is_not_run_with_the_next(installation, kind, restarted):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        await at_prompt(shell)
        installation.cli("pause", shell.id)
        cut = await shell.call("pty_run", script=LONG_SCRIPT)
        assert cut.is_error and "bytes typed" in cut.text, cut
        if restarted:
            installation.kill_daemon()
        installation.cli("resume", shell.id)
        result = await finished(shell, "echo ok", wait_ms=20_000)
        assert (result.output, result.exit_code) == ("ok", 0), result
        assert not (installation.work / "ran").exists()
        # A later one is typed as usual, at an undisturbed prompt.
        await finished(shell, "false")
        if kind != "fish":
            assert (await finished(shell, "echo $?")).output == "1"
        result = await finished(shell, LONG_SCRIPT, wait_ms=50_000)
        assert result.exit_code == 0 and (installation.work / "ran").read_text().count("\n") == 40


async def test_a_script_that_a_killed_daemon_was_typing_is_not_run_with_the_next(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        await at_prompt(shell)
        # The shell does not read on: the terminal is full when the daemon dies.
        installation.cli("pause", shell.id)
        typing = asyncio.create_task(shell.call("pty_run", script=LONG_SCRIPT))
        await asyncio.to_thread(until, lambda: unfinished_inputs(installation), 30)
        installation.kill_daemon()
        await typing
        installation.cli("resume", shell.id)
        result = await finished(shell, "echo ok", wait_ms=20_000)
        assert (result.output, result.exit_code) == ("ok", 0), result
        assert not (installation.work / "ran").exists() and not unfinished_inputs(installation)


@pytest.mark.parametrize("attempt", range(3))
async def test_input_of_another_at_the_same_time_is_not_taken_for_the_script(installation, kind, attempt):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        other = asyncio.create_task(shell.call("pty_write", text="echo WRITTEN\r", wait_ms=0))
        mine = asyncio.create_task(shell.call("pty_run", script="echo MINE; sh -c 'exit 4'", wait_ms=20_000))
        await other
        reply = await mine
        # It is typed at the prompt after the other line, or refused while that runs.
        if not reply.is_error:
            assert "\nMINE" in reply.text and "exit 4" in reply.text, reply


@pytest.mark.limit(120)
@pytest.mark.parametrize("prints", ["once", "always"])
async def test_a_job_that_prints_much_leaves_the_prompt_known(installation, kind, prints):
    """Two MiB after the last mark, and with a job that never pauses."""
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        chunk = "head -c 2500000 /dev/zero | tr '\\0' x"
        rest = {"once": "true", "always": "while sleep 0.02; do echo tick; done"}[prints]
        await finished(shell, f"sh -c \"sleep 1; {chunk}; touch printed; {rest}\" &")
        await asyncio.to_thread(until, (installation.work / "printed").exists, 30)
        result = await finished(shell, "sh -c 'echo MINE; exit 4'", wait_ms=20_000)
        assert "MINE" in result.output and result.exit_code == 4, result
        await shell.close()


@pytest.mark.parametrize("restarted", [False, True], ids=["same-daemon", "next-daemon"])
async def test_cleared_output_leaves_the_prompt_known(installation, kind, restarted):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "cd /tmp")
        installation.cli("clear", shell.id)
        if restarted:
            installation.kill_daemon()
        result = await finished(shell, "sh -c 'echo MINE; exit 4'")
        assert (result.output, result.exit_code, result.cwd) == ("MINE", 4, "/tmp"), result


async def test_an_end_that_was_cleared_is_known(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        # The time for a command includes the wait for the first prompt.
        await finished(shell, "true")
        gate = installation.work / "gate"
        begun = await shell.run(f"sh -c 'until test -e {gate}; do sleep 0.1; done'; cd /tmp; sh -c 'exit 4'", wait_ms=1_000)
        assert begun.end == "running", begun
        gate.touch()
        read, offset = None, begun.reply.value("next_offset")
        while read is None or read.value("shell")["state"] != "prompt":
            read = await shell.must("pty_read", view="screen", until="output", offset=offset, wait_ms=1_000)
            offset = read.value("next_offset")
        installation.cli("clear", shell.id)
        result = ShellRunResult(await shell.call("pty_run", offset=begun.reply.value("offset")))
        assert (result.end, result.exit_code, result.cwd) == ("finished", 4, "/tmp"), result
        assert (await finished(shell, "echo MINE")).output == "MINE"


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_command_in_flight_is_typed_once_and_answered_by_the_next_daemon(installation, kind, attempts):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await finished(shell, "true")
        gate = installation.work / "gate"
        script = f"echo x >> ran; while test ! -e {gate}; sleep 0.05; end; echo y; sh -c 'exit 4'"
        if kind != "fish":
            script = script.replace("; sleep", "; do sleep").replace("; end", "; done")
        call = asyncio.create_task(shell.call("pty_run", script=script, wait_ms=40_000))
        await asyncio.to_thread(until, (installation.work / "ran").exists, 20)
        for _ in range(attempts):
            installation.kill_daemon()
            await asyncio.to_thread(installation.cli, "ps")
        gate.touch()
        result = ShellRunResult(await call)
        assert (result.output, result.exit_code) == ("y", 4), result
        assert "exit 4, waited " in result.first, "how long the command ran is not known"
        assert (installation.work / "ran").read_text() == "x\n"


async def test_a_command_that_ends_the_shell_is_not_typed_again(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        script = "touch ran; while test ! -e gate; do sleep 0.05; done; exit 3"
        call = asyncio.create_task(shell.call("pty_run", script=script, wait_ms=40_000))
        await asyncio.to_thread(until, (installation.work / "ran").exists, 20)
        (installation.work / "gate").touch()
        installation.kill_daemon()
        reply = await call
        # The next daemon finds the shell running or ended.
        assert "shell has ended" in reply.text and "nothing was run" not in reply.text, reply


@pytest.mark.parametrize("end", ["kill", "shutdown"])
async def test_an_interrupted_write_names_where_to_look(installation, end):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "true")
        typed = shell.call("pty_write", text="touch ran; sleep 300", keys=["enter"], until="exit", wait_ms=40_000)
        call = asyncio.create_task(typed)
        await asyncio.to_thread(until, (installation.work / "ran").exists, 20)
        if end == "kill":
            installation.kill_daemon()
        else:
            installation.cli("shutdown")
        reply = await call
        assert reply.is_error and f'look with pty_read {{"session":"{shell.id}"}}' in reply.text, reply


async def test_an_undisturbed_prompt_is_not_cleared(installation):
    """The clearing keys are typed only where somebody else wrote since the last script."""
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await finished(shell, "bind -x '\"\\C-k\": touch cleared'")
        await finished(shell, "true")
        await finished(shell, "true")
        assert not (installation.work / "cleared").exists()
        await shell.type("half a line")
        await finished(shell, "true")
        assert (installation.work / "cleared").exists()


async def test_offset_0_waits_for_the_first_command(installation, kind):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell(kind)
        await at_prompt(shell)
        await shell.line("touch begun; sleep 300")
        await asyncio.to_thread(until, (installation.work / "begun").exists, 20)
        result = ShellRunResult(await shell.call("pty_run", offset=0, wait_ms=1_000))
        assert result.end == "running" and "is at its prompt" not in result.reply.text, result


async def test_the_end_of_the_shell_is_told_with_its_status(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        result = await shell.run("exit 7", wait_ms=10_000)
        assert "the shell has ended (exit code 7), " in result.first, result


async def test_an_offset_beyond_the_output_is_no_place_to_read_from(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        reply = await shell.call("pty_read", view="text", offset=10**12)
        assert reply.is_error and "beyond the output" in reply.text, reply
