# A provider of the older generation: no execute bit, no first line.
printf '%s\n' "$@" >argv
name=
for word; do [[ $word != --name=* ]] || name=${word#--name=}; done
mkdir -p "$LIB_DIR/bin"
printf '#!/bin/sh\necho "made by %s"\n' "$name" >"$LIB_DIR/bin/$name"
chmod 755 "$LIB_DIR/bin/$name"
printf '{"type": "Binary", "name": "%s", "abspath": "%s", "version": "1.0", "binprovider": "testtool"}\n' "$name" "$LIB_DIR/bin/$name"
