import * as oauth from 'oauth4webapi';
import { type RefreshToken, readExpiry, type Session } from './session.ts';
import { loadSettings } from './settings.ts';
import { storeUnsent } from './unsent.ts';

/** Exchanges a refresh token for a session with a new credential; null if it is no longer valid (RFC 6749, §5.2). */
export async function refresh(before: RefreshToken): Promise<Session | null> {
  const { server, client } = await openProvider();
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), before.refreshToken, options);
  try {
    return toSession(await oauth.processRefreshTokenResponse(server, client, response), before);
  } catch (failure) {
    if (failure instanceof oauth.ResponseBodyError && failure.error === 'invalid_grant') return null;
    throw failure;
  }
}

/** A pending sign-in, which the redirect from the identity provider is checked against once. */
interface Attempt {
  readonly verifier: string;
  readonly state: string;
  readonly returnTo: string;
}

const ATTEMPT_KEY = 'portico:sign-in';
const redirectUri = () => `${location.origin}/signin/callback`;

/** How long a response is waited for: while one tab renews the session, the others wait for it. */
const TIMEOUT_MS = 10_000;

/** Plain HTTP is allowed only if the desk itself is served over HTTP. */
const options = { [oauth.allowInsecureRequests]: location.protocol === 'http:', signal: () => AbortSignal.timeout(TIMEOUT_MS) };

async function openProvider() {
  const { identity_provider: provider } = await loadSettings();
  if (!provider) throw new Error('This server has no identity provider.');
  const issuer = new URL(provider.issuer);
  const response = await oauth.discoveryRequest(issuer, options);
  const server = await oauth.processDiscoveryResponse(issuer, response);
  const client: oauth.Client = { client_id: provider.client_id };
  return { provider, server, client };
}

/** Redirects to the identity provider: authorization code flow with PKCE. */
export async function leaveForProvider(returnTo: string): Promise<void> {
  const { provider, server, client } = await openProvider();
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  sessionStorage.setItem(ATTEMPT_KEY, JSON.stringify({ verifier, state, returnTo } satisfies Attempt));
  const address = new URL(server.authorization_endpoint ?? '');
  address.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: redirectUri(),
    response_type: 'code',
    scope: scopeOf(server),
    ...audienceOf(provider.audience),
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    prompt: 'consent',
  }).toString();
  storeUnsent();
  location.assign(address);
}

/** Requests a token for the gateway: `resource` of RFC 8707, if it is a URL, and `audience`, which some providers expect. */
const audienceOf = (audience: string) => ({ audience, ...(URL.canParse(audience) && { resource: audience }) });

/** Requests a refresh token (`offline_access`) if supported. Without one the person signs in again when the session ends. */
const scopeOf = ({ scopes_supported }: oauth.AuthorizationServer) =>
  ['openid', 'profile', 'email', ...(scopes_supported?.includes('offline_access') ? ['offline_access'] : [])].join(' ');

/** Handles the redirect from the identity provider: exchanges the code for a session. */
export async function comeBack(address: URL): Promise<{ session: Session; returnTo: string }> {
  const attempt: Attempt | null = JSON.parse(sessionStorage.getItem(ATTEMPT_KEY) ?? 'null');
  sessionStorage.removeItem(ATTEMPT_KEY);
  if (!attempt) throw new Error('This tab has not asked to sign in.');
  const { provider, server, client } = await openProvider();
  const parameters = oauth.validateAuthResponse(server, client, address, attempt.state);
  const response = await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), parameters, redirectUri(), attempt.verifier, {
    ...options,
    additionalParameters: audienceOf(provider.audience),
  });
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response);
  return { session: toSession(tokens, null), returnTo: attempt.returnTo };
}

function toSession({ access_token, expires_in, refresh_token }: oauth.TokenEndpointResponse, before: RefreshToken | null): Session {
  const refreshToken = refresh_token ?? before?.refreshToken;
  return {
    kind: 'provider',
    credential: access_token,
    expires: readExpiry(access_token) ?? (expires_in ? Date.now() + expires_in * 1000 : null),
    renewal: refreshToken ? { refreshToken, family: before?.family ?? crypto.randomUUID() } : null,
  };
}
