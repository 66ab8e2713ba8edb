"$TESTNEEDS_BINARY" >made.txt
