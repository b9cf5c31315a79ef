"""`python -m cortex` is the `cortex` command."""

from cortex.cli import main

if __name__ == "__main__":
    main()
