/** A refused request as Whop answers it (docs.whop.com/developer/troubleshooting, "API request errors"). */
export class WhopRefusal extends Error {
  readonly status: number;
  readonly body: { error: { code: string; message: string } };

  constructor(status: number, message: string = TEXTS[status]![1]) {
    super(message);
    this.status = status;
    this.body = { error: { code: TEXTS[status]![0], message } };
  }
}

const TEXTS: Readonly<Record<number, readonly [code: string, message: string]>> = {
  400: ['invalid_request', 'The request is malformed'],
  401: ['unauthorized', 'The API key is not valid'],
  403: ['forbidden', 'The API key lacks a permission'],
  404: ['not_found', 'The record was not found'],
  429: ['rate_limited', 'Too many requests'],
  500: ['internal_error', 'Something went wrong'],
};
