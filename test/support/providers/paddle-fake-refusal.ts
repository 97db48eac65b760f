/** A refused request as Paddle answers it (developer.paddle.com/api-reference/about/errors; the page of each code below /errors). */
export class PaddleRefusal extends Error {
  readonly status: number;
  readonly body: object;

  constructor(code: string, detail: string, { status = 400, errors }: RefusalFacts = {}) {
    super(detail);
    this.status = status;
    const type = status >= 500 ? 'api_error' : 'request_error';
    const documentation_url = `https://developer.paddle.com/v1/errors/${code}`;
    const error = { type, code, detail, documentation_url, ...(errors === undefined ? {} : { errors }) };
    this.body = { error, meta: { request_id: '00000000-0000-0000-0000-000000000000' } };
  }
}

type RefusalFacts = { readonly status?: number; readonly errors?: readonly { field: string; message: string }[] };

export function refuseField(field: string, message: string): PaddleRefusal {
  return new PaddleRefusal('bad_request', 'Invalid request.', { errors: [{ field, message }] });
}

export function refuseMissing(id: string): PaddleRefusal {
  return new PaddleRefusal('not_found', `Entity ${id} not found`, { status: 404 });
}
