/** Refusals of a set: stable codes, and messages that say what to change. One table. */

export interface Refusal {
  readonly code: string
  readonly message: string
  readonly field: string
}

export const refusals = {
  nameTooLong: (name: string): Refusal => ({
    code: 'NameTooLong',
    field: 'metadata.name',
    message: `metadata.name has ${name.length} characters: use at most 50, so that pod names of the form <name>-<12 hex digits> fit in 63`,
  }),
  templateEmpty: (): Refusal => ({
    code: 'TemplateEmpty',
    field: 'spec.template.spec.containers',
    message: 'spec.template.spec.containers is empty: name at least one container',
  }),
  restartPolicy: (value: string): Refusal => ({
    code: 'RestartPolicyNotAlways',
    field: 'spec.template.spec.restartPolicy',
    message: `spec.template.spec.restartPolicy is ${value}: leave it out or set it to Always, backups have to stay up`,
  }),
  reservedLabel: (label: string): Refusal => ({
    code: 'ReservedLabel',
    field: 'spec.template.metadata.labels',
    message: `spec.template.metadata.labels has ${label}: remove it, this label is written by the operator`,
  }),
  unknownStrategy: (key: string, value: string): Refusal => ({
    code: 'UnknownStrategy',
    field: `spec.strategy.${key}`,
    message: `spec.strategy.${key} is ${value}: use one of random, oldest, newest, spread`,
  }),
} as const
