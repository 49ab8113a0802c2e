/** TLS settings as node:tls takes them. */
export interface TlsMaterial {
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** The credentials of one request at the moment it is sent. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | string[]>>
  /** The same object as long as the contents are the same: the connection pool compares by reference. */
  readonly tls: TlsMaterial
}
