#!/bin/sh
# Makes the .ptx beside each .cu with the nvcc on the PATH. File names lose their folders, so the result is the same everywhere, but for
# a number in the names of internal variables that nvcc makes of the folder.
set -e
cd "$(dirname "$0")"
for source in *.cu; do
    nvcc -ptx -arch=sm_90a -lineinfo -std=c++17 -extended-lambda -o "${source%.cu}.ptx" "$source"
    sed -i -E 's#^(\t\.file\t[0-9]+ ")[^"]*/#\1#' "${source%.cu}.ptx"
done
