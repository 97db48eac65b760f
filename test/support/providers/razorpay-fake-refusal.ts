/** A refused request as Razorpay answers it (razorpay.com/docs/errors). */
export class RazorpayRefusal extends Error {
  readonly status: number;
  readonly body: { error: Record<string, unknown> };

  constructor(
    status: number,
    description: string,
    { code = 'BAD_REQUEST_ERROR', field, reason = 'input_validation_failed', metadata = {} }: RefusalFacts = {},
  ) {
    super(description);
    this.status = status;
    const facts = { code, description, source: 'business', step: 'payment_initiation', reason, metadata };
    this.body = { error: field === undefined ? facts : { ...facts, field } };
  }
}

type RefusalFacts = { code?: string; field?: string; reason?: string; metadata?: Record<string, string> };

/** Builds the refusal of an unknown id: Razorpay answers 400, not 404. */
export function refuseUnknownId(): RazorpayRefusal {
  return new RazorpayRefusal(400, 'The id provided does not exist');
}
