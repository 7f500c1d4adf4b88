#!/bin/sh
# A one-node Slurm on this machine, from Debian's packages. See README.md beside this file.
#
#   install.sh [--yes] [--print]     --yes: do not ask; --print: only print slurm.conf, change nothing
set -eu

yes="" print=""
for word in "$@"; do
  case "$word" in
    --yes) yes=1 ;;
    --print) print=1 ;;
    *) echo "install.sh: unknown option $word (there are --yes and --print)" >&2; exit 2 ;;
  esac
done

host=$(hostname -s)
cpus=$(nproc --all)
memory=$(awk '/^MemTotal:/ { print int($2 / 1024 * 0.95) }' /proc/meminfo)
gpus=$(ls /dev 2>/dev/null | grep -c '^nvidia[0-9]' || true)

if [ -d /run/systemd/system ] && [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  tracking="ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup,task/affinity"
else
  tracking="ProctrackType=proctrack/linuxproc
TaskPlugin=task/none"
fi
gres="" gres_types=""
if [ "$gpus" -gt 0 ]; then
  gres=" Gres=gpu:$gpus"
  gres_types="GresTypes=gpu"
fi

conf="ClusterName=$host
SlurmctldHost=$host
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
$tracking
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1,sched_interval=1,bf_interval=1
JobCompType=jobcomp/filetxt
JobCompLoc=/var/log/slurm/jobcomp.txt
AccountingStorageType=accounting_storage/none
$gres_types
NodeName=$host CPUs=$cpus RealMemory=$memory$gres State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=$((memory / cpus))"

if [ -n "$print" ]; then
  echo "$conf"
  exit 0
fi
[ "$(id -u)" -eq 0 ] || { echo "install.sh: needs root: sudo $0" >&2; exit 1; }
[ ! -e /etc/slurm/slurm.conf ] || { echo "install.sh: /etc/slurm/slurm.conf exists: this machine has a Slurm already; nothing was changed" >&2; exit 1; }
if [ -z "$yes" ]; then
  echo "$conf"
  printf 'Write this to /etc/slurm/slurm.conf and install Slurm? [y/N] '
  read -r answer
  [ "$answer" = y ] || exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge
mkdir -p /etc/slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm
chown slurm: /var/lib/slurm/slurmctld /var/log/slurm
echo "$conf" > /etc/slurm/slurm.conf
if [ "$gpus" -gt 0 ]; then
  echo "Name=gpu File=/dev/nvidia[0-$((gpus - 1))]" | sed 's/\[0-0\]/0/' > /etc/slurm/gres.conf
fi
case "$tracking" in
  *cgroup*) printf 'ConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainDevices=yes\n' > /etc/slurm/cgroup.conf ;;
  *) echo 'CgroupAutomount=no' > /etc/slurm/cgroup.conf ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl restart munge slurmctld slurmd
else
  mkdir -p /run/munge && chown munge: /run/munge
  su -s /bin/sh munge -c /usr/sbin/munged
  slurmctld
  slurmd
fi
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
  sleep 1
done
sinfo -N -l
[ "$gpus" -eq 0 ] || echo "GPUs: $gpus, as gres/gpu"
echo "Next: rota slurm plan --output node.toml && rota plan node.toml"
