/** Everything that an installation has put on the nodes. */
import { playground } from './cluster.ts'

/**
 * Lists everything of ours on a node, one a line: processes, mounts, directories, cgroups, a setting, and rules in the
 * network namespaces of the node and of its pods. Labels in the image store are not included.
 */
const lookOn = (label: string) => `
  for process in /proc/[0-9]*; do
    program=$(readlink $process/exe) || continue
    case $program in /run/understudy/*|/var/lib/understudy/*) echo "process $program";; esac
  done
  grep -o -E ' (/run|/var/lib)/understudy[^ ]* .* - tmpfs .*' /proc/1/mountinfo | sed 's/^/mount/'
  for directory in /run/understudy /var/lib/understudy; do
    if [ -e $directory ]; then echo "directory $directory"; fi
  done
  seen=''
  for net in /proc/[0-9]*/ns/net /run/netns/*; do
    id=$(stat -L -c %i $net 2> /dev/null) || continue
    case " $seen " in *" $id "*) continue;; esac
    seen="$seen $id"
    # Its last process may have ended since.
    tables=$(nsenter --net=$net nft list tables) || { ! [ -e $net ] || echo "rules in $net cannot be read"; continue; }
    if echo "$tables" | grep -q -w understudy; then echo "rules of ours in $net"; fi
  done
  # The kernel's own values are 10 and 120.
  if [ "$(cat /proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close)" = 0 ]; then echo 'setting of ours for resets'; fi
  if [ "$(cat /proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent)" = 3 ]; then echo 'setting of ours for connects'; fi
  # Cgroups are the machine's, on which there may be other clusters.
  find /sys/fs/cgroup -maxdepth 4 -type d -path '*/${label}/*' -name understudy 2> /dev/null | sed 's/^/cgroup /'
  true`

/** Returns that list for each node. */
export async function leftovers(): Promise<Readonly<Record<string, string>>> {
  const cluster = await playground()
  const found = await Promise.all(
    cluster.plan.nodes.map(
      async ({ name, label }) =>
        [name, (await cluster.inNode(name, ['sh', '-c', lookOn(label)])).trim()] as const,
    ),
  )
  return Object.fromEntries(found)
}
