/** Webhooks of the sandbox provider with its signature (docs/rules/payments.md, "The sandbox"). */
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import type { Scope } from '../../core/foundation/scope.ts';
import type { TestRequest } from './api.ts';

export function sandboxNotice(notice: object, secret: string, { tenant_id, environment_id }: Scope): TestRequest {
  const body = JSON.stringify(notice);
  const own = createHmac('sha256', secret).update(`${tenant_id}/${environment_id}`).digest('base64');
  // The timestamp is by the machine's clock, with which the receiver's library compares it.
  const now = new Date();
  const headers = {
    'content-type': 'application/json',
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(own).sign('msg_1', now, body),
  };
  return { key: null, headers, body: Buffer.from(body) };
}
