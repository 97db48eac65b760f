/** What payment providers tell us: without a key, believed by its signature. */
import { z } from 'zod';
import { receiveNotice } from '../../actions/payments/receive-notice.ts';
import { loadClock } from '../../storage/environment-clock.ts';
import { runAs } from '../../storage/request-context.ts';
import { type Context, MessageAnswer, type Route, route } from '../http/route.ts';

const Place = z.object({
  tenant_id: z.string().min(1).meta({ description: 'The tenant.' }),
  environment_id: z.string().min(1).meta({ description: 'Its environment.' }),
});

/** Read from its bytes, which are what is signed. */
const SandboxNotice = z.record(z.string(), z.unknown()).meta({
  id: 'SandboxNotice',
  example: { type: 'payment.succeeded', data: { gateway_payment_id: 'sbx_01JZ8K3M5N7P9Q1R3S5T7V9W1X' } },
});

export const providerNoticeRoutes: Route[] = [
  route({
    method: 'post',
    path: '/webhooks/sandbox/:tenant_id/:environment_id',
    operation_id: 'receiveSandboxWebhook',
    summary: 'What the sandbox tells of a payment',
    description:
      'Signed as Standard Webhooks has it, with the secret of the environment; `type` is payment.succeeded or payment.failed, and `data.gateway_payment_id` says of which. Also served without /v1. What fails is answered with an error, so that it is told again.',
    tag: 'Payments',
    access: 'public',
    signed: true,
    params: Place,
    body: SandboxNotice,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params: scope }, context) => {
      const requestContext = { scope, user_id: 'sandbox', secret_id: null, request_id: context.request_id };
      const payment = await runAs(requestContext, () => received(scope, context));
      return { message: `payment ${payment.id} is ${payment.payment_status}` };
    },
  }),
];

function received(scope: z.output<typeof Place>, { services, request, received_at }: Context) {
  const secret = services.config.PAYMENT_SANDBOX_SECRET ?? null;
  const headers = Object.fromEntries(
    ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, request.get(name)]),
  );
  const notice = { headers, body: String(request.body), secret };
  const now = async () => (await loadClock(services.postgres, scope))?.now ?? received_at;
  return receiveNotice(services, scope, { gateway: 'sandbox', notice, now });
}
