"""`python -m probformer.cli`, as `python -m probformer`."""

from probformer.cli import main

if __name__ == "__main__":
    main()
