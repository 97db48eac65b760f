/**
 * Webhook backend of Svix, which stores the endpoints, signs, sends and retries. An environment is one Svix
 * application. A message has the id of its event, which Svix accepts only once.
 */
import type { Svix } from 'svix';
import type { SendOutcome, WebhookBackend, WebhookMessage, WebhookScope } from '../webhook-backend.ts';

type SvixOptions = { readonly token: string; readonly server_url?: string | undefined };

const TIMEOUT_MS = 10_000;

export function createSvixBackend(options: SvixOptions): WebhookBackend {
  let opening: Promise<Svix> | null = null;
  const client = () => (opening ??= openClient(options));
  const known = new Set<string>();
  const application = async (scope: WebhookScope) => {
    const uid = `${scope.tenant_id}_${scope.environment_id}`;
    if (!known.has(uid)) await (await client()).application.getOrCreate({ name: uid, uid });
    known.add(uid);
    return uid;
  };
  return {
    has_targets: false,
    async send(message) {
      const begun = performance.now();
      const answer = await createMessage(message, { client, application });
      const url = options.server_url ?? 'svix';
      return { url, ...answer, duration_ms: Math.round(performance.now() - begun) };
    },
    async dashboard(scope, { may_change }) {
      const app_id = await application(scope);
      const { url, token } = await (await client()).authentication.appPortalAccess(app_id, { readOnly: !may_change });
      return { url, token, app_id };
    },
  };
}

/** Opens the client. Its library is loaded only if Svix is used. */
async function openClient({ token, server_url }: SvixOptions): Promise<Svix> {
  const { Svix: Client } = await import('svix');
  return new Client(token, {
    requestTimeout: TIMEOUT_MS,
    numRetries: 0,
    ...(server_url === undefined ? {} : { serverUrl: server_url }),
  });
}

type SvixConnection = {
  client(): Promise<Svix>;
  application(scope: WebhookScope): Promise<string>;
};

async function createMessage(
  message: WebhookMessage,
  { client, application }: SvixConnection,
): Promise<Pick<SendOutcome, 'http_status' | 'response_body' | 'error'>> {
  try {
    const uid = await application(message);
    const sent = { eventType: message.event_name, eventId: message.id, payload: JSON.parse(message.body) };
    const options = { idempotencyKey: `${message.id}_${message.event_name}` };
    const { id } = await (await client()).message.create(uid, sent, options);
    return { http_status: 202, response_body: id, error: null };
  } catch (error) {
    const code = getStatusCode(error);
    // Svix has this event from an earlier attempt.
    if (code === 409) return { http_status: code, response_body: null, error: null };
    const reason = error instanceof Error ? error.message : String(error);
    return { http_status: code, response_body: null, error: reason || `answered ${code}` };
  }
}

function getStatusCode(error: unknown): number | null {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number'
    ? error.code
    : null;
}
