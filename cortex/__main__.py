"""`python -m cortex` is the `cortex` command."""

from cortex.cli.main import main

if __name__ == "__main__":
    main()
