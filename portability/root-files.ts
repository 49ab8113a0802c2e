/**
 * The files of a node's root file system that its packages do not have. They are the same in each run: all that differs
 * between runs is on the seed, a second disk with the label `seed` (seed-files.ts).
 */

/** Mount point of the seed. */
export const SEED = '/opt/understudy'
export const START_SCRIPT = `${SEED}/machine/start.sh`
export const serviceScript = (name: string): string => `${SEED}/machine/${name}.sh`

const startUnit = `[Unit]
Description=Name, network and configuration of this node, from the seed
RequiresMountsFor=${SEED}
Before=ssh.service containerd.service kubelet.service kube-proxy.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh ${START_SCRIPT}
[Install]
WantedBy=multi-user.target
`

const serviceUnit = (name: string): string => `[Unit]
Description=${name}, from the seed
Requires=understudy-start.service
After=understudy-start.service containerd.service
[Service]
ExecStart=/bin/bash ${serviceScript(name)}
Restart=always
RestartSec=5
`

export const rootFiles: Readonly<Record<string, string>> = {
  'etc/fstab': `LABEL=root / ext4 noatime 0 1\nLABEL=seed ${SEED} ext4 ro 0 0\n`,
  'etc/hosts': '127.0.0.1 localhost\n',
  'etc/resolv.conf': '',
  // Empty: systemd makes one at each boot.
  'etc/machine-id': '',
  'etc/modules-load.d/node.conf': 'overlay\nbr_netfilter\n',
  'etc/ssh/sshd_config.d/node.conf': [
    `HostKey ${SEED}/machine/ssh_host_key`,
    `AuthorizedKeysFile ${SEED}/machine/authorized_keys`,
    'PasswordAuthentication no',
    'UseDNS no',
    '',
  ].join('\n'),
  'etc/systemd/system/understudy-start.service': startUnit,
  'etc/systemd/system/kubelet.service': serviceUnit('kubelet'),
  'etc/systemd/system/kube-proxy.service': serviceUnit('kube-proxy'),
}

/** The services of Kubernetes start later, when the images are there: else the kubelet would look for them elsewhere. */
export const enabledUnits = ['understudy-start.service'] as const
export const laterUnits = ['kubelet.service', 'kube-proxy.service'] as const
/** Timers that would only cost time on an emulated processor. */
export const disabledUnits = [
  ...[
    'apt-daily.timer',
    'apt-daily-upgrade.timer',
    'e2scrub_all.timer',
    'fstrim.timer',
    'dpkg-db-backup.timer',
  ],
  ...['systemd-networkd.service', 'systemd-timesyncd.service'],
] as const
