"""Fill in the right-hand sides of the fixtures from a PostgreSQL 15 server.

    python tests/language/regenerate.py psql -h SOCKET -U USER -d DATABASE

The database must have the encoding UTF8, the collation C and the time zone UTC. The tests themselves
only read the fixtures; look at the difference before committing it.
"""

import re
import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


def psql(command, script):
    options = ["-X", "-q", "-A", "-t", "-F", "|", "-P", "null=NULL"]
    done = subprocess.run([*command, *options], input=script, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def expressions(command):
    path = FIXTURES / "expressions.txt"
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            lines.append(line)
            continue
        expression = line.split(" => ")[0]
        output, error = psql(command, f"SELECT ({expression})::text;\n")
        value = "ERROR" if error else output.removesuffix("\n")
        lines.append(f"{expression} => {value}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def queries(command):
    tables = (FIXTURES / "tables.sql").read_text(encoding="utf-8")
    tables = re.sub(r"\) WITH \([^)]*\);", ");", tables)
    for path in sorted(FIXTURES.glob("queries*.txt")):
        blocks = []
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            query = block.split("\n----")[0]
            body = "\n".join(line for line in query.splitlines() if not line.startswith("#"))
            if not body.strip():
                blocks.append(block)
                continue
            script = f"BEGIN;\n{tables}\n{body};\nROLLBACK;\n"
            output, error = psql(command, script)
            rows = "ERROR" if "ERROR" in error else output.removesuffix("\n")
            blocks.append(f"{query}\n----\n{rows}".rstrip("\n"))
            if rows == "ERROR":
                sys.stderr.write(f"{query}\n{error}\n")
        path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    expressions(sys.argv[1:])
    queries(sys.argv[1:])
