#!/bin/busybox sh
# The first process of the guest: makes a root that can be pivoted away from (the initial one
# cannot), mounts what a system has, and starts the tests as each of their roles.
# OSTLER_ROLES comes from the kernel's command line.
if [ "$1" != mounted ]; then
    /bin/busybox mount -t tmpfs -o mode=755 tmpfs /new
    /bin/busybox cp -a /bin /etc /guest /init /modules /new/
    for directory in proc sys dev tmp var/tmp data srv/work run root home/user new usr; do
        /bin/busybox mkdir -p "/new/$directory"
    done
    exec /bin/busybox switch_root /new /init mounted
fi
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /var/tmp
hostname guest
ip link set lo up
for module in brd overlay; do insmod "/modules/$module.ko"; done
# The driver of ext4, which mounts with other ids; the one of tmpfs does not before 6.3.
mke2fs /dev/ram0 >/dev/null 2>&1
mount -t ext4 /dev/ram0 /data
mkdir -p /data/work /data/user
echo secret >/data/secret
chmod 600 /data/secret /etc/shadow
chown 1000:1000 /data/user /home/user
chmod 755 /data
# The console may stand in the middle of a line of the firmware's.
echo
for role in $OSTLER_ROLES; do
    case $role in
    user) su -s /bin/sh user -c "/guest $role" ;;
    no-namespaces)
        echo 0 >/proc/sys/user/max_user_namespaces
        /guest "$role"
        ;;
    *) /guest "$role" ;;
    esac
done
echo "GUEST END"
poweroff -f
