"""`python -m probformer` is the command line."""

from probformer.cli import main

if __name__ == "__main__":
    main()
