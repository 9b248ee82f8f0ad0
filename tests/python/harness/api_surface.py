"""The REST routes and tool profiles, parsed from the source, so that tests cover new ones too."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CRATES = ROOT / "crates"
#: The OpenAPI document, as `cargo xtask openapi` writes it.
DOCUMENT = ROOT / "docs" / "openapi.json"
FUNCTION = re.compile(r"^(?:pub(?:\([^)]*\))? )?fn (\w+)\(.*?^}", re.S | re.M)
ROUTE = re.compile(r'\.route\(\s*"([^"]+)"\s*,\s*((?:[\w:]+\([^()]*\)\s*\.?\s*)+),?\s*\)', re.S)
METHOD = re.compile(r"\b(get|post|put|delete|patch|any)\(")
#: Functions whose routes are not below `/api/v1`.
PLAIN = ("process_routes", "metrics_routes", "document_routes")


def rest_routes():
    """`[(method, path)]` of REST; fails if it parses fewer than the source declares."""
    found = []
    for file in sorted((CRATES / "http" / "src" / "rest").rglob("*.rs")):
        text = file.read_text()
        written = len(re.findall(r"\.route\(", text))
        read = 0
        for function in FUNCTION.finditer(text):
            prefix = "" if function[1] in PLAIN else "/api/v1"
            for path, handlers in ROUTE.findall(function[0]):
                read += 1
                found += [(method.upper(), prefix + path) for method in METHOD.findall(handlers)]
        assert read == written, f"{file}: {written} routes are written, {read} are understood"
    assert found, "no routes were found in the source"
    return sorted(set(found))


def documented():
    """`{(method, path): operation}` of the OpenAPI document."""
    paths = json.loads(DOCUMENT.read_text())["paths"]
    return {(method.upper(), path): operation for path, methods in paths.items() for method, operation in methods.items()}


def profiles():
    """The names of all tool profiles."""
    text = (CRATES / "mcp" / "src" / "profile.rs").read_text()
    words = re.search(r"PROFILE_WORDS.*?\[\s*(\"[^]]*)\]", text, re.S)[1]
    return [word for word in re.findall(r'"(\w+)"', words) if word != "seeds"]
