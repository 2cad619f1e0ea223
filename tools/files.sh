#!/bin/sh

# The files of the project, below the present folder, each with a NUL after
# it: those that git knows, or was not told to ignore.  What make dist has
# packed is no repository: all but what is built there.

if [ -e .git ]; then
    exec git -c safe.directory='*' ls-files -z --cached --others \
        --exclude-standard
fi

exec find . \( -path ./build -o -path ./var -o -name node_modules \
    -o -name __pycache__ -o -name '*.egg-info' \) -prune \
    -o -type f ! -name '*.o' ! -name '*.so' -printf '%P\0'
