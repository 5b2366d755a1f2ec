"""`python -m everview` is the command `everview`."""

from everview.cli import main

main()
