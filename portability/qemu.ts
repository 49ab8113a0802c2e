/** A virtual machine by QEMU, without hardware support, on the bridge of a cluster. */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createMachineCgroups, detectCgroups } from '../playground/cgroups.ts'
import { PlaygroundError } from '../playground/failure.ts'
import { powerOff } from '../playground/machine.ts'
import type { NodePlan } from '../playground/plan.ts'
import { identify, isAlive } from '../playground/process.ts'
import type { RootDisk } from './root-disk.ts'

export interface MachineInputs {
  readonly guest: NodePlan
  /** Network namespace with the tap device `guest.link`. */
  readonly namespace: string
  readonly root: RootDisk
  readonly seed: string
  /** Files that get the console of the node and the messages of QEMU. */
  readonly console: string
  readonly log: string
}

/**
 * One processor, and one thread of QEMU. With more, another processor may execute an instruction that the kernel has just replaced: agents switch
 * events of the kernel on and off, and it died of that (`Oops: int3` in `__schedule`).
 */
const processors = 1
const memory = '4G'

/** Returns the argv of QEMU. */
export function qemuArguments({
  guest,
  root,
  seed,
  console,
}: Omit<MachineInputs, 'namespace' | 'log'>): string[] {
  return [
    'qemu-system-x86_64',
    // The processors of machines without hardware support differ too much to test on some of them only: see ADR 155.
    // A fifth level of page tables would make each miss of the emulated TLB slower.
    ...['-accel', 'tcg,thread=single,tb-size=512', '-cpu', 'max,la57=off'],
    ...['-smp', String(processors), '-m', memory],
    ...['-kernel', root.kernel, '-initrd', root.initrd],
    ...['-append', 'root=LABEL=root rw console=ttyS0 quiet net.ifnames=0 mitigations=off'],
    // The disk is of the cache: what the node writes goes to a temporary file without a name.
    ...['-drive', `file=${root.disk},format=raw,if=virtio,cache=unsafe,snapshot=on`],
    ...['-drive', `file=${seed},format=raw,if=virtio,readonly=on`],
    ...['-netdev', `tap,id=net,ifname=${guest.link},script=no,downscript=no`],
    ...['-device', `virtio-net-pci,netdev=net,mac=${guest.mac}`],
    ...['-device', 'virtio-rng-pci', '-display', 'none', '-monitor', 'none'],
    ...['-serial', `file:${console}`, '-no-reboot'],
  ]
}

export interface VirtualMachine {
  /** @throws PlaygroundError if it has ended */
  check(): Promise<void>
  /** Cuts its power. Its disk is forgotten. */
  stop(): Promise<void>
}

export async function startMachine(inputs: MachineInputs): Promise<VirtualMachine> {
  const log = openSync(inputs.log, 'a')
  const argv = [
    `--net=/run/netns/${inputs.namespace}`,
    '--',
    // It dies with this program, however that ends.
    ...['setpriv', '--pdeathsig', 'KILL', '--'],
    ...qemuArguments(inputs),
  ]
  // A process group of its own: Ctrl-C in the terminal reaches only us.
  const child = spawn('nsenter', argv, { stdio: ['ignore', log, log], detached: true, cwd: '/' })
  closeSync(log)
  await new Promise<void>((resolve, reject) => {
    child.on('spawn', resolve)
    child.on('error', reject)
  })
  const { label, name } = inputs.guest
  const process = child.pid === undefined ? undefined : await identify(child.pid)
  try {
    await joinCgroups(label, child.pid ?? 0)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return {
    async check() {
      if (process !== undefined && (await isAlive(process))) return
      throw new PlaygroundError(`the virtual machine ${name} has ended`, { logPath: inputs.log })
    },
    stop: () => powerOff(label, []),
  }
}

/** Gives QEMU the weight of a node of the playground. As a lone process, it would wait for all of them. */
async function joinCgroups(label: string, pid: number): Promise<void> {
  for (const path of await createMachineCgroups(await detectCgroups(), label, 'node'))
    await writeFile(join(path, 'cgroup.procs'), String(pid))
}
