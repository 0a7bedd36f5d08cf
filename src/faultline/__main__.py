"""`python -m faultline`: the command line, for when the `faultline` program is not on the path."""

from faultline.cli import main

if __name__ == "__main__":
    main()
