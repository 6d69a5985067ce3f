declare module 'oidc-provider' {
  /** What the tests use of it: its own types bring those of another Node.js. */
  export class Provider {
    constructor(issuer: string, settings: object);
    callback(): import('node:http').RequestListener;
  }
}
