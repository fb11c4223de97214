import sys

from workers.host.cli import main

sys.exit(main())
