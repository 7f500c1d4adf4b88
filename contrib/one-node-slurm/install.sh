#!/bin/sh
# A one-node Slurm on this machine, from Debian's packages. See README.md beside this file.
#
#   install.sh [--yes] [--print] [--remove]
#     --yes     do not ask
#     --print   only print slurm.conf, change nothing
#     --remove  end this Slurm and remove what the script wrote; packages, logs and the state in /var/lib/slurm stay
set -eu
umask 022  # Slurm's own user reads what is written here, whatever the file mask of the caller

yes="" print="" remove=""
made=/etc/slurm/made-by-one-node-slurm
for word in "$@"; do
  case "$word" in
    --yes) yes=1 ;;
    --print) print=1 ;;
    --remove) remove=1 ;;
    *) echo "install.sh: unknown option $word (there are --yes, --print and --remove)" >&2; exit 2 ;;
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
SlurmctldHost=$host(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
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
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory$gres State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=$((memory / cpus))"

if [ -n "$print" ]; then
  echo "$conf"
  exit 0
fi
[ "$(id -u)" -eq 0 ] || { echo "install.sh: needs root: sudo $0" >&2; exit 1; }
if [ -n "$remove" ]; then
  [ -e "$made" ] || { echo "install.sh: this script has made no Slurm here ($made is missing); nothing was changed" >&2; exit 1; }
  if [ -d /run/systemd/system ]; then
    systemctl stop slurmd slurmctld
  else
    for file in /run/slurmd.pid /run/slurmctld.pid $(grep munged "$made" || true); do
      if [ -s "$file" ] && pid=$(cat "$file") && kill "$pid" 2>/dev/null; then
        while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
      fi
    done
  fi
  rm -f /etc/slurm/slurm.conf /etc/slurm/cgroup.conf /etc/slurm/gres.conf "$made"
  echo "Slurm has ended, and its configuration is removed. Its packages, logs and state are left."
  exit 0
fi
[ ! -e /etc/slurm/slurm.conf ] || { echo "install.sh: /etc/slurm/slurm.conf exists: this machine has a Slurm already; nothing was changed" >&2; exit 1; }
if [ -z "$yes" ]; then
  echo "$conf"
  printf 'Write this to /etc/slurm/slurm.conf and install Slurm? [y/N] '
  read -r answer
  [ "$answer" = y ] || exit 1
fi

PATH=$PATH:/usr/sbin:/sbin
if ! { command -v munged && command -v slurmctld && command -v slurmd && command -v scontrol; } >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge
fi
mkdir -p /etc/slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm
chmod 755 /etc/slurm /var/lib/slurm /var/log/slurm
chown slurm: /var/lib/slurm/slurmctld /var/log/slurm
echo "$conf" > /etc/slurm/slurm.conf
chmod 644 /etc/slurm/slurm.conf
echo "the configuration here was written by contrib/one-node-slurm/install.sh" > "$made"
if [ "$gpus" -gt 0 ]; then
  echo "Name=gpu File=/dev/nvidia[0-$((gpus - 1))]" | sed 's/\[0-0\]/0/' > /etc/slurm/gres.conf
fi
case "$tracking" in
  *cgroup*) printf 'ConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainDevices=yes\n' > /etc/slurm/cgroup.conf ;;
  *) echo 'CgroupAutomount=no' > /etc/slurm/cgroup.conf ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl enable --quiet munge slurmctld slurmd
  systemctl restart munge slurmctld slurmd
else
  echo "install.sh: no systemd on this machine: the daemons are started directly, and not again after a reboot" >&2
  if [ ! -S /run/munge/munge.socket.2 ] || ! munge -n </dev/null >/dev/null 2>&1; then
    mkdir -p /run/munge /var/lib/munge /var/log/munge
    chown munge: /run/munge /var/lib/munge /var/log/munge
    chmod 755 /run/munge
    su -s /bin/sh munge -c /usr/sbin/munged
    echo /run/munge/munged.pid >> "$made"
  fi
  slurmctld
  slurmd
fi
end=$(($(date +%s) + 60))
while [ "$(timeout 5 sinfo -h -o %T 2>/dev/null)" != idle ]; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "install.sh: the node is not idle after 60 s. The last lines of the logs:" >&2
    tail -n 5 /var/log/slurm/slurmctld.log /var/log/slurm/slurmd.log >&2 || true
    exit 1
  fi
  sleep 1
done
sinfo -N -l
[ "$gpus" -eq 0 ] || echo "GPUs: $gpus, as gres/gpu"
echo "Next: rota slurm plan --output node.toml && rota plan node.toml"
