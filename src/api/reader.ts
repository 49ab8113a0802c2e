import { invalidValue, type Refusal, refusalOf, type refusals } from './errors.ts'

export type Reader = ReturnType<typeof reader>

/**
 * Readers of single fields. Absent and null give the default; an invalid value is recorded in `refused` and gives the
 * default too.
 */
export function reader(refused: Refusal[]) {
  const field = <T>(
    name: string,
    value: unknown,
    fits: (value: NonNullable<unknown>) => boolean,
    expected: string,
    otherwise: T,
  ): T => {
    if (value === undefined || value === null) return otherwise
    if (fits(value)) return value as T
    refused.push(invalidValue(name, value, expected))
    return otherwise
  }
  const invalid = (name: string, value: unknown, expected: string) => {
    refused.push(invalidValue(name, value ?? null, expected))
  }
  return {
    integer: (name: string, value: unknown, { min, max }: Bounds, otherwise: number) =>
      field(
        name,
        value,
        it => Number.isInteger(it) && (it as number) >= min && (it as number) <= max,
        `a whole number from ${min} to ${max}`,
        otherwise,
      ),
    text: (name: string, value: unknown, { min, max }: Bounds, otherwise: string) =>
      field(
        name,
        value,
        it => typeof it === 'string' && it.length >= min && it.length <= max,
        `a string of ${min} to ${max} characters`,
        otherwise,
      ),
    flag: (name: string, value: unknown, otherwise: boolean) =>
      field(name, value, it => typeof it === 'boolean', 'true or false', otherwise),
    oneOf: <Value extends string>(
      name: string,
      value: unknown,
      values: readonly Value[],
      otherwise: NoInfer<Value>,
    ) =>
      field<Value>(
        name,
        value,
        it => values.some(one => one === it),
        `one of ${values.join(', ')}`,
        otherwise,
      ),
    /** Parses a text with a unit to a number. */
    measure: (
      name: string,
      value: unknown,
      parse: (text: string) => number | undefined,
      { min, max }: Bounds,
      expected: string,
    ): number => {
      const read = typeof value === 'string' ? parse(value) : undefined
      if (read !== undefined && read >= min && read <= max) return read
      refused.push(invalidValue(name, value, expected))
      return min
    },
    /** A name of at most 63 characters that matches this pattern. */
    matching: (name: string, value: unknown, form: string) =>
      field<string>(
        name,
        value,
        it => typeof it === 'string' && it.length <= 63 && new RegExp(form).test(it),
        `a name of at most 63 characters that matches ${form}`,
        '',
      ),
    invalid,
    /** Refuses the first field that is not among these: a misspelt one would silently have no effect. */
    only: (name: string, given: Readonly<Record<string, unknown>>, names: readonly string[]) => {
      const strange = Object.keys(given).find(key => !names.includes(key))
      if (strange !== undefined)
        invalid(
          name === '' ? strange : `${name}.${strange}`,
          given[strange],
          'nothing: there is no such field',
        )
    },
    refuse: (code: keyof typeof refusals) => {
      refused.push(refusalOf(code))
    },
    object: (name: string, value: unknown) =>
      field<Readonly<Record<string, unknown>>>(
        name,
        value,
        it => typeof it === 'object' && !Array.isArray(it),
        'an object',
        {},
      ),
  }
}

interface Bounds {
  readonly min: number
  readonly max: number
}
