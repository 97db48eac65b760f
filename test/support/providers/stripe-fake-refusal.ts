/** An error in Stripe's form (docs.stripe.com/api/errors): the type, and if there are any, the code, the parameter and the reason of the bank. */
export class StripeRefusal extends Error {
  readonly status: number;
  readonly body: { error: Record<string, unknown> };
  readonly headers: Record<string, string>;

  constructor(status: number, error: StripeFault, headers: Record<string, string> = {}) {
    super(error.message);
    this.status = status;
    this.body = { error: { type: 'invalid_request_error', ...error } };
    this.headers = headers;
  }
}

type StripeFault = {
  message: string;
  type?: string;
  code?: string;
  decline_code?: string;
  param?: string;
  payment_intent?: unknown;
};

export function refuseMissing(object: string, id: string, status = 404, param = 'id'): StripeRefusal {
  return new StripeRefusal(status, { code: 'resource_missing', message: `No such ${object}: '${id}'`, param });
}
