/**
 * Svix as the backend: it has the endpoints, signs, sends and tries again. An environment is an application there; a message
 * carries the id of its event, under which Svix takes it once.
 */
import type { Svix } from 'svix';
import type { Message, Outcome, Place, WebhookBackend } from './backend.ts';

export type SvixOptions = { readonly token: string; readonly server_url?: string | undefined };

const TIMEOUT_MS = 10_000;

export function svixBackend(options: SvixOptions): WebhookBackend {
  let opening: Promise<Svix> | null = null;
  const client = () => (opening ??= open(options));
  const known = new Set<string>();
  const application = async (scope: Place) => {
    const uid = `${scope.tenant_id}_${scope.environment_id}`;
    if (!known.has(uid)) await (await client()).application.getOrCreate({ name: uid, uid });
    known.add(uid);
    return uid;
  };
  return {
    has_targets: false,
    async send(message) {
      const begun = performance.now();
      const answer = await create(message, { client, application });
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

/** The client is loaded where it is wanted, and by nobody else. */
async function open({ token, server_url }: SvixOptions): Promise<Svix> {
  const { Svix: Client } = await import('svix');
  return new Client(token, {
    requestTimeout: TIMEOUT_MS,
    numRetries: 0,
    ...(server_url === undefined ? {} : { serverUrl: server_url }),
  });
}

type Connected = {
  client(): Promise<Svix>;
  application(scope: Place): Promise<string>;
};

async function create(
  message: Message,
  { client, application }: Connected,
): Promise<Pick<Outcome, 'http_status' | 'response_body' | 'error'>> {
  try {
    const uid = await application(message);
    const sent = { eventType: message.event_name, eventId: message.id, payload: JSON.parse(message.body) };
    const options = { idempotencyKey: `${message.id}_${message.event_name}` };
    const { id } = await (await client()).message.create(uid, sent, options);
    return { http_status: 202, response_body: id, error: null };
  } catch (error) {
    const code = codeOf(error);
    // It has the event: an earlier try had arrived.
    if (code === 409) return { http_status: code, response_body: null, error: null };
    const reason = error instanceof Error ? error.message : String(error);
    return { http_status: code, response_body: null, error: reason || `answered ${code}` };
  }
}

function codeOf(error: unknown): number | null {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number'
    ? error.code
    : null;
}
