"""One Python function for each SQL function: arguments in, Call out.

There is a file for each folder of sql/functions/; the use is `calls.enqueue(new)`, whatever the file.
"""

from faultline.store.calls.access import *
from faultline.store.calls.jobs import *
from faultline.store.calls.leases import *
from faultline.store.calls.limits import *
from faultline.store.calls.maintenance import *
from faultline.store.calls.reads import *
from faultline.store.calls.schedules import *
