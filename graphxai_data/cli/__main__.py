"""`python -m graphxai_data.cli`."""

from graphxai_data.cli import main

main()
