import json
import os
import sys

with open("argv-30_read", "w") as argv:
    argv.writelines(word + "\n" for word in sys.argv[1:])
with open(os.path.join(os.environ["SNAP_DIR"], "order.txt"), "a") as order:
    order.write("30_read\n")
print("found a page")
print(json.dumps({"type": "Snapshot", "url": "http://older.test/child?a=1&b=$HOME%20\"x\"", "depth": 1, "title": "A child", "tags": "one,two"}))
print(json.dumps({"type": "Snapshot", "url": "javascript:alert(1)", "depth": 1}))
print(json.dumps({"type": "Tag", "name": "older"}))
print(json.dumps({"type": "ArchiveResult", "status": "succeeded", "output_str": "1 page", "cmd": ["x"]}), end="")
