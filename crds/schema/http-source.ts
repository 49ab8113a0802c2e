import {
  defaults,
  type HttpHeader,
  type HttpSourceSpec,
  limits,
  pushMethods,
} from '../../src/api/backuppodset.ts'
import { refusals } from '../../src/api/errors.ts'
import { headerName, headerValue, ownHeaders, statePath } from '../../src/api/http-source.ts'
import { choice, count, flag, integer, list, object, rule, type SchemaOf, text } from './build.ts'

const standard = defaults.httpSource

const headers = (description: string) =>
  list(
    description,
    object<HttpHeader>(
      {
        name: text('Name of the header.', { minLength: 1, maxLength: 128, pattern: headerName }),
        value: text('Its value. It is not a secret: whoever may read the set reads it.', {
          maxLength: 1024,
          pattern: headerValue,
        }),
      },
      { name: true, value: true },
      {
        'x-kubernetes-validations': [
          rule(
            `!(self.name.lowerAscii() in [${ownHeaders.map(name => `'${name}'`).join(', ')}])`,
            refusals.HttpHeaderReserved.message,
            { fieldPath: '.name' },
          ),
        ],
      },
    ),
    limits.headers,
  )

const path = (description: string, standardPath?: string) =>
  text(description, {
    minLength: 1,
    maxLength: 1024,
    pattern: statePath,
    ...(standardPath === undefined ? {} : { default: standardPath }),
  })

export const httpSource = (): SchemaOf<HttpSourceSpec> =>
  object<HttpSourceSpec>(
    {
      port: count('Port of the pods at which the application answers.', {
        minimum: limits.port.min,
        maximum: limits.port.max,
      }),
      path: path(
        'What a GET is sent to; its answer with a status from 200 to 299 is the state, of whatever kind and with its Content-Type. Default /state.',
        standard.path,
      ),
      headers: headers('Sent with the GET, and with the push unless push.headers has one of that name.'),
      maxSize: text(
        'The largest state that is taken, as 16Mi; at most 256Mi. The operator has one of each primary in its memory. Default 16Mi.',
        { default: standard.maxSize, maxLength: 32, pattern: '^[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?$' },
      ),
      timeoutSeconds: integer(
        'Seconds for one GET, and for one push. Default 5.',
        limits.pullTimeout,
        standard.timeoutSeconds,
      ),
      restoreSeconds: integer(
        'Seconds within which a successor has to take the state, its start included; then the next candidate is tried. Default 60.',
        limits.restoreSeconds,
        standard.restoreSeconds,
      ),
      push: object<NonNullable<HttpSourceSpec['push']>>(
        {
          path: path('Where the state is sent to. Default: as path.'),
          method: choice('POST, PUT or PATCH. Default POST.', pushMethods, standard.method),
          headers: headers('Sent with the push alone.'),
          everyInterval: flag(
            'Gives the state also to hot backups that are ready, each time it was pulled: they run and are in step with a primary, at most one interval behind. With several primaries the backups follow the slots in turn; a successor is given the state of its own slot in any case. Default false: a state is given to a successor alone.',
            standard.everyInterval,
          ),
        },
        {},
        {
          description:
            'How a successor is given the state, where it is not a POST to the same path, and whether hot backups are.',
        },
      ),
    },
    { port: true },
    { description: 'Only with source http: where the application gives its state, and takes it.' },
  )
