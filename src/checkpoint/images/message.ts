/**
 * Messages of CRIU's images, described by hand: only the fields that are read or changed here. The codec keeps every
 * other field of a message, so fields that are unknown here survive an edit.
 */
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  isFieldSet,
  type Message,
  toBinary,
} from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

const scalarTypes = {
  uint32: FieldDescriptorProto_Type.UINT32,
  int32: FieldDescriptorProto_Type.INT32,
  sint32: FieldDescriptorProto_Type.SINT32,
  uint64: FieldDescriptorProto_Type.UINT64,
  bool: FieldDescriptorProto_Type.BOOL,
  /**
   * Also for texts and for nested messages that are not decoded here: their encoding is the same. The codec would
   * replace bytes of a text that are not UTF-8, and names of the kernel may have such bytes.
   */
  bytes: FieldDescriptorProto_Type.BYTES,
} as const

interface ScalarValues {
  uint32: number
  int32: number
  sint32: number
  uint64: bigint
  bool: boolean
  bytes: Uint8Array
}

type ScalarType = keyof ScalarValues
type FieldType = ScalarType | MessageType<Fields>

interface Field<Type extends FieldType = FieldType, Repeated extends boolean = boolean> {
  readonly number: number
  readonly type: Type
  readonly repeated: Repeated
}

export type Fields = Readonly<Record<string, Field>>

/** A kind of message: its name in CRIU's sources, and its fields that are known here. */
export interface MessageType<F extends Fields> {
  readonly name: string
  readonly fields: F
  readonly descriptor: DescMessage
}

type One<Type> = Type extends ScalarType
  ? ScalarValues[Type]
  : Type extends MessageType<infer F>
    ? Decoded<F>
    : never

/** A message in memory. An unset scalar reads as 0, false or no bytes; use `has` where that matters. */
export type Decoded<F extends Fields> = {
  -readonly [Name in keyof F]: F[Name] extends Field<infer Type, infer Repeated>
    ? Repeated extends true
      ? One<Type>[]
      : Type extends ScalarType
        ? One<Type>
        : One<Type> | undefined
    : never
}

/** The decoded form of a message type. */
export type ValueOf<Type> = Type extends MessageType<infer F> ? Decoded<F> : never

export const one = <const Type extends FieldType>(number: number, type: Type): Field<Type, false> => ({
  number,
  type,
  repeated: false,
})

export const many = <const Type extends FieldType>(number: number, type: Type): Field<Type, true> => ({
  number,
  type,
  repeated: true,
})

export function message<const F extends Fields>(name: string, fields: F): MessageType<F> {
  const nested = Object.values(fields).flatMap(({ type }) => (typeof type === 'string' ? [] : [type]))
  const file = create(FileDescriptorProtoSchema, {
    name: `${name}.proto`,
    syntax: 'proto2',
    dependency: [...new Set(nested.map(type => `${type.name}.proto`))],
    messageType: [
      {
        name,
        field: Object.entries(fields).map(([field, { number, type, repeated }]) => ({
          name: field,
          number,
          // CRIU marks most of its fields as required. CRIU itself, not this codec, reports a missing one.
          label: repeated ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
          ...(typeof type === 'string'
            ? { type: scalarTypes[type] }
            : { type: FieldDescriptorProto_Type.MESSAGE, typeName: `.${type.name}` }),
        })),
      },
    ],
  })
  const known = nested.map(type => type.descriptor.file)
  const registry = createFileRegistry(file, wanted => known.find(it => `${it.name}.proto` === wanted))
  const descriptor = registry.getMessage(name)
  if (descriptor === undefined) throw new TypeError(`the description of ${name} does not contain it`)
  return { name, fields, descriptor }
}

/** @throws the codec's error on bytes that are not this message; `image-file.ts` adds the name. */
export function decode<F extends Fields>(type: MessageType<F>, bytes: Uint8Array): Decoded<F> {
  return fromBinary(type.descriptor, bytes) as unknown as Decoded<F>
}

export function encode<F extends Fields>(type: MessageType<F>, value: Decoded<F>): Uint8Array {
  return toBinary(type.descriptor, value as unknown as Message)
}

/** A text for people and for comparisons; bytes that are not UTF-8 are replaced. */
export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

/** A message with these fields and no others. */
export function make<F extends Fields>(type: MessageType<F>, fields: Partial<Decoded<F>>): Decoded<F> {
  return create(type.descriptor, fields as never) as unknown as Decoded<F>
}

/** True if the field was in the bytes, or was set since. */
export function has<F extends Fields>(
  type: MessageType<F>,
  value: Decoded<F>,
  field: keyof F & string,
): boolean {
  const descriptor = type.descriptor.field[field]
  return descriptor !== undefined && isFieldSet(value as unknown as Message, descriptor)
}
