import { commandLine, quote } from './shell.ts'

/** A program that a machine runs for its whole life; restarted a second after it ends. */
export interface Service {
  /** Its log is /var/log/understudy/NAME.log. */
  readonly name: string
  readonly argv: readonly string[]
  /** Shell conditions that must hold before the first start; checked every 0.2 s. */
  readonly after?: readonly string[]
}

export interface InitInputs {
  readonly hostname: string
  readonly cgroups: readonly string[]
  /** File that gets the pid of the machine's first process, as this machine sees it. */
  readonly pidFile: string
  readonly overlay: {
    readonly lower: string
    readonly upper: string
    readonly work: string
    readonly merged: string
  }
  /** Directories of this host that are bound into the machine, by their path inside. */
  readonly binds: Readonly<Record<string, string>>
  readonly hosts: Readonly<Record<string, string>>
  readonly machineId: string
  /** Files below /proc/sys and their values. */
  readonly sysctls: Readonly<Record<string, string>>
  /** Directories searched for programs before the system's. */
  readonly path: readonly string[]
  readonly services: readonly Service[]
}

/**
 * Returns the script of a machine's first process, up to the switch to its own root file system. It begins in this
 * machine's file system but in the new mount, pid and uts namespaces.
 */
export function renderInit(inputs: InitInputs): string {
  const { overlay } = inputs
  const root = overlay.merged
  const inside = (path: string): string => quote(`${root}${path}`)
  return `set -e
# "0" means the writing process.
${inputs.cgroups.map(path => `echo 0 > ${quote(`${path}/cgroup.procs`)}`).join('\n')}
# /proc is still this machine's, so this is the pid that others can use.
read -r pid _ < /proc/self/stat
echo "$pid" > ${quote(`${inputs.pidFile}.new`)}
mv ${quote(`${inputs.pidFile}.new`)} ${quote(inputs.pidFile)}
mount --make-rprivate /
mount -t overlay overlay -o ${quote(`lowerdir=${overlay.lower},upperdir=${overlay.upper},workdir=${overlay.work}`)} ${quote(root)}
mount -t proc proc ${inside('/proc')}
mount --rbind /sys ${inside('/sys')}
mount --rbind /dev ${inside('/dev')}
mount -t tmpfs tmpfs ${inside('/run')}
mount -t tmpfs tmpfs ${inside('/tmp')}
${Object.entries(inputs.binds)
  .map(([path, source]) => `mkdir -p ${inside(path)}\nmount --bind ${quote(source)} ${inside(path)}`)
  .join('\n')}
printf '%s\\n' ${Object.entries(inputs.hosts)
    .map(([name, address]) => quote(`${address} ${name}`))
    .join(' ')} > ${inside('/etc/hosts')}
echo ${quote(inputs.machineId)} > ${inside('/etc/machine-id')}
cd ${quote(root)}
# chroot would not do: runc and checkpointing want a root that is a mount point.
pivot_root . .old
cd /
umount -l /.old
mount --make-rshared /
echo ${quote(inputs.hostname)} > /proc/sys/kernel/hostname
touch /opt/understudy/machine/booted
exec /bin/bash /opt/understudy/machine/services.sh
`
}

/** Returns the script that the first process then executes inside: sysctls, then the services, each with its log. */
export function renderServices(inputs: InitInputs): string {
  return `export PATH=${quote([...inputs.path, '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(':'))} HOME=/root
${Object.entries(inputs.sysctls)
  .map(([name, value]) => `[ ! -e /proc/sys/${name} ] || echo ${quote(value)} > /proc/sys/${name}`)
  .join('\n')}
service() {
  local log=/var/log/understudy/$1.log; shift
  while :; do
    local code=0
    "$@" >> "$log" 2>&1 || code=$?
    echo "$(date -u +%FT%TZ) machine: ended with $code, starting it again" >> "$log"
    sleep 1
  done
}
${inputs.services.map(renderService).join('\n')}
# Process 1 also reaps what the container shims leave behind.
while :; do wait; sleep 1; done
`
}

function renderService({ name, argv, after = [] }: Service): string {
  const waits = after.map(condition => `until ${condition} 2> /dev/null; do sleep 0.2; done; `).join('')
  return `{ ${waits}service ${quote(name)} ${commandLine(argv)}; } &`
}

/**
 * Returns a shell condition that is true once the API server is ready. Before that its authorizer does not know the
 * system's own roles, so it refuses clients, and they back off. The port is tried first because that costs nothing.
 */
export function apiIsReady(address: string, port: number, caPath: string): string {
  const readyz = `curl --silent --fail --max-time 2 --output /dev/null --cacert ${quote(caPath)}`
  return `{ (: < /dev/tcp/${address}/${port}) && ${readyz} https://${address}:${port}/readyz; }`
}

export function socketExists(path: string): string {
  return `[ -S ${quote(path)} ]`
}
