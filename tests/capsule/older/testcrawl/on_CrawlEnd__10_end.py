# The older generation runs this with python3.
import os
import sys

with open("argv-end", "w") as argv:
    argv.writelines(word + "\n" for word in sys.argv[1:])
with open(os.path.join(os.environ["CRAWL_DIR"], "order.txt"), "a") as order:
    order.write("10_end\n")
