import { refusals } from '../errors.ts'
import { rule, type Schema } from './build.ts'

/** A rule of `spec` in CEL, with the field and message of the refusal. */
export const specRule = (
  code: keyof typeof refusals,
  condition: string,
  worded: (message: string) => string = message => message,
): Schema => {
  const { field, message } = refusals[code]
  return rule(condition, worded(message), { fieldPath: field.replace(/^spec/, '') })
}
