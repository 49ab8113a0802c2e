/** How to reach the API server and who we are there. */

/** TLS settings as node:tls takes them. */
export interface TlsMaterial {
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

/** What one request needs at the moment it is sent. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>
  readonly tls: TlsMaterial
}

export interface Connection {
  /** Base URL of the API server, without a trailing slash. */
  readonly server: string
  /** The namespace that the kubeconfig's context or the service account names. */
  readonly namespace: string | undefined
  /** URL of an HTTP proxy to go through. */
  readonly proxyUrl: string | undefined
  /** Current credentials; cheap, they are cached and renewed inside. */
  credentials(): Promise<Credentials>
  /** Forgets cached credentials: the server has refused them. */
  invalidate(): void
}

export interface ConnectionOptions {
  /** Path of a kubeconfig. Default: in a pod the service account, else $KUBECONFIG, else ~/.kube/config. */
  readonly kubeconfig?: string | undefined
  /** Context in it. Default: its current-context. */
  readonly context?: string | undefined
}
