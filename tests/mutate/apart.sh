#!/bin/sh
# Runs a command that may do anything, such as a changed program: as a user without rights, in a folder of its own.
#
#     tests/mutate/apart.sh FOLDER COMMAND...
#
# FOLDER belongs to root and is not a link; at the first use it is given to the user nobody, who has no other files: HOME and TMPDIR lie in it,
# and no other variable of the caller's is kept but PATH. What is root's outside of FOLDER can be read, not changed, also through links in
# FOLDER. Later uses find it nobody's and change no owner, as by then there may be hard links in it. Needs root, as nobody else can become
# nobody.
set -eu
say() {
    echo "apart: $*" >&2
    exit 2
}
[ $# -ge 2 ] || say "expected FOLDER COMMAND..."
folder=$1
shift
[ "$(id -u)" = 0 ] || say "needs root, to run the command as a user without rights"
command -v setpriv >/dev/null 2>&1 || say "needs setpriv (util-linux)"
[ -d "$folder" ] && [ ! -L "$folder" ] || say "'$folder': expected a folder"
folder=$(cd "$folder" && pwd -P)
case $folder in
/dev/shm/?*) ;;
/ | /bin* | /boot* | /dev* | /etc* | /home | /lib* | /opt | /proc* | /root | /sbin* | /srv | /sys* | /tmp | /usr* | /var | /work)
    say "'$folder': expected a folder made for this" ;;
esac
if [ "$(stat -c %u "$folder")" = 0 ]; then
    mkdir -p "$folder/home" "$folder/tmp"
    chown -R -h -P nobody "$folder" # links themselves, never what they lead to
fi
cd "$folder"
exec setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
    env -i PATH="$PATH" HOME="$folder/home" TMPDIR="$folder/tmp" LANG=C.UTF-8 "$@"
