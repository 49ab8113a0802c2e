/** Bills of material in CycloneDX, written and validated by its own library. */
import { ComponentType, HashAlgorithm } from '@cyclonedx/cyclonedx-library/Enums'
import {
  Bom,
  Component,
  HashDictionary,
  LicenseRepository,
  Metadata,
  NamedLicense,
} from '@cyclonedx/cyclonedx-library/Models'
import { JSON as Json, JsonSerializer } from '@cyclonedx/cyclonedx-library/Serialize'
import { Spec1dot6, Version } from '@cyclonedx/cyclonedx-library/Spec'
import { JsonStrictValidator } from '@cyclonedx/cyclonedx-library/Validation'
import { PackageURL } from 'packageurl-js'

/** A package of another project in something that we publish. */
export interface Part {
  readonly ecosystem: 'deb' | 'npm' | 'generic'
  readonly name: string
  readonly version: string
  /** Of Debian packages. */
  readonly architecture?: string
  readonly licence?: string
}

export interface Whole {
  readonly type: 'image' | 'program'
  readonly name: string
  readonly version: string
  /** Digest of an image: `sha256:<hex>`. */
  readonly digest?: string
  readonly architecture?: string
}

/** Returns the bill of material as JSON. The same arguments give the same bytes. */
export function sbomOf(whole: Whole, parts: readonly Part[], time: Date): string {
  const { name, version, digest } = whole
  const hashes =
    digest === undefined ? [] : ([[HashAlgorithm['SHA-256'], digest.replace('sha256:', '')]] as const)
  const subject = new Component(
    whole.type === 'image' ? ComponentType.Container : ComponentType.Application,
    name,
    { version, bomRef: 'understudy', hashes: new HashDictionary(hashes), purl: purlOfWhole(whole) },
  )
  const bom = new Bom({ metadata: new Metadata({ component: subject, timestamp: time }) })
  for (const part of parts) {
    const component = componentOf(part)
    bom.components.add(component)
    subject.dependencies.add(component.bomRef)
  }
  const serializer = new JsonSerializer(new Json.Normalize.Factory(Spec1dot6))
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`
}

/** Returns why a document is no valid bill of material; undefined if it is one. */
export async function sbomProblem(text: string): Promise<string | undefined> {
  const found = await new JsonStrictValidator(Version.v1dot6).validate(text)
  return found === null ? undefined : JSON.stringify(found)
}

function componentOf(part: Part): Component {
  const purl = purlOf(part)
  const licences = part.licence === undefined ? [] : [new NamedLicense(part.licence)]
  return new Component(ComponentType.Library, part.name, {
    version: part.version,
    purl,
    // Given explicitly: the library draws missing ones at random.
    bomRef: purl,
    licenses: new LicenseRepository(licences),
  })
}

function purlOf({ ecosystem, name, version, architecture }: Part): string {
  const [scope, bare] = name.startsWith('@') ? name.split('/') : [undefined, name]
  const namespace = ecosystem === 'deb' ? 'debian' : scope
  const qualifiers = architecture === undefined ? undefined : { arch: architecture }
  return new PackageURL(ecosystem, namespace, bare ?? name, version, qualifiers).toString()
}

function purlOfWhole({ type, name, version, digest, architecture }: Whole): string {
  if (type === 'program') return new PackageURL('generic', undefined, name, version).toString()
  const qualifiers = architecture === undefined ? undefined : { arch: architecture }
  return new PackageURL('oci', undefined, name, digest ?? version, qualifiers).toString()
}
