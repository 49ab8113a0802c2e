import { defaults, type HttpHeader, type HttpSourceSpec, limits, pushMethods } from '../backuppodset.ts'
import { refusals } from '../errors.ts'
import { headerName, headerValue, ownHeaders, statePath } from '../http-source.ts'
import { choice, count, flag, integer, list, object, rule, type SchemaOf, text } from './build.ts'

const standard = defaults.httpSource

const headers = (description: string) =>
  list(
    description,
    object<HttpHeader>(
      {
        name: text('Name of the header.', { minLength: 1, maxLength: 128, pattern: headerName }),
        value: text('Value of the header. Not for secrets: every user who may read the set can read it.', {
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
      port: count('Port of the pods on which the application answers.', {
        minimum: limits.port.min,
        maximum: limits.port.max,
      }),
      path: path(
        'Path of the GET request. An answer with a status from 200 to 299 is the state, in any format; its Content-Type is kept with it. Default /state.',
        standard.path,
      ),
      headers: headers(
        'Headers of the GET, and of the push unless push.headers has a header of the same name.',
      ),
      maxSize: text(
        'Maximum size of a state, for example 16Mi; at most 256Mi. The operator keeps one state of each primary in its memory. Default 16Mi.',
        { default: standard.maxSize, maxLength: 32, pattern: '^[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?$' },
      ),
      timeoutSeconds: integer(
        'Timeout of one GET, and of one push, in seconds. Default 5.',
        limits.pullTimeout,
        standard.timeoutSeconds,
      ),
      restoreSeconds: integer(
        'Seconds in which a successor must start and accept the state; after that the operator tries the next candidate. Default 60.',
        limits.restoreSeconds,
        standard.restoreSeconds,
      ),
      push: object<NonNullable<HttpSourceSpec['push']>>(
        {
          path: path('Path that the state is sent to. Default: the value of path.'),
          method: choice('POST, PUT or PATCH. Default POST.', pushMethods, standard.method),
          headers: headers('Headers of the push only.'),
          everyInterval: flag(
            'Also sends the state to the ready hot backups after each pull, so that they are at most one interval behind a primary. With several primaries the backups follow the slots in turn; a successor always gets the state of its own slot. Default false: only a successor gets a state.',
            standard.everyInterval,
          ),
        },
        {},
        {
          description:
            'How the operator sends the state to a successor, if not by a POST to the same path, and whether hot backups get it too.',
        },
      ),
    },
    { port: true },
    { description: 'Only with source http: where the application serves its state and accepts it.' },
  )
