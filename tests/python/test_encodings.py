"""Bytes stay raw on disk and are decoded on reading, never in the middle of a character."""

import pytest

from harness import until

pytestmark = pytest.mark.anyio

TEXT = "编码测试：中文输出没有乱码，一个字也不能少。"


def printf(data):
    return "".join(f"\\{byte:03o}" for byte in data)


@pytest.mark.parametrize("label", ["gbk", "cp936", "gb18030"])
async def test_chinese_bytes_arrive_as_text(each_installation, label):
    async with each_installation.agent() as agent:
        octal = printf(TEXT.encode("gbk"))
        reply = await agent.execute("printf", octal + "\\n", encoding=label)
        assert TEXT in reply.text, reply


async def test_characters_split_between_writes_are_whole(installation):
    data = TEXT.encode("gbk")
    steps = "".join(f"printf '\\{byte:03o}'; sleep 0.01; " for byte in data)
    async with installation.agent() as agent:
        pid = await agent.start_sh(f"{steps} echo", encoding="gbk")
        await agent.ended(pid, installation)
        assert TEXT in await agent.lines(pid)


async def test_following_never_splits_a_character(installation):
    data = "字".encode("gbk")
    script = f"printf '\\{data[0]:03o}'; sleep 2.5; printf '\\{data[1]:03o}\\n'"
    async with installation.agent() as agent:
        pid = await agent.start_sh(script, encoding="gbk")
        first = await agent.logs(pid, follow_seconds=1)
        assert "\ufffd" not in first.text
        await agent.ended(pid, installation)
        assert "字" in await agent.lines(pid)


@pytest.mark.parametrize(
    ("label", "text"),
    [("shift_jis", "日本語の出力"), ("euc-kr", "한국어"), ("windows-1252", "naïve café"), ("utf-16le", "wide")],
)
async def test_other_labels(installation, label, text):
    async with installation.agent() as agent:
        codec = {"windows-1252": "cp1252", "euc-kr": "euc_kr", "utf-16le": "utf-16-le"}.get(label, label)
        octal = printf((text + "\n").encode(codec))
        pid = await agent.start("printf", octal, encoding=label)
        await agent.ended(pid, installation)
        assert text in (await agent.logs(pid)).text


async def test_auto_detection(installation):
    async with installation.agent() as agent:
        reply = await agent.execute("printf", printf(TEXT.encode("gbk")) + "\\n", encoding="auto")
        assert TEXT in reply.text


async def test_bytes_stay_raw_on_disk(installation):
    data = TEXT.encode("gbk") + b"\n"
    async with installation.agent() as agent:
        pid = await agent.start("printf", printf(data), encoding="gbk")
        await agent.ended(pid, installation)
        assert installation.cli("logs", pid, "--raw").stdout == data
        segment = next(installation.executions()[0].glob("output.*.seg"))
        assert data in segment.read_bytes()


async def test_the_default_encoding_is_a_setting(installation):
    async with installation.agent(env={"DEFAULT_ENCODING": "gbk"}) as agent:
        reply = await agent.execute("printf", printf(TEXT.encode("gbk")) + "\\n")
        assert TEXT in reply.text


async def test_grep_sees_the_decoded_text(installation):
    async with installation.agent() as agent:
        pid = await agent.start("printf", printf(f"甲\n{TEXT}\n乙\n".encode("gbk")), encoding="gbk")
        await agent.ended(pid, installation)
        until(lambda: installation.json("info", pid)["status"] == "completed")
        assert TEXT in await agent.lines(pid, grep="乱码")
        assert "甲" not in await agent.lines(pid, grep="乱码")
