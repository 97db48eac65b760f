/** A refused request as Nomod answers it (nomod.com/docs/api-reference/requests-responses). */
export class NomodRefusal extends Error {
  readonly status: number;
  readonly body: { readonly error: { readonly message: string; readonly code: string; readonly docs_url: string } };

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.body = { error: { message, code, docs_url: 'https://nomod.com/docs/api-reference/requests-responses' } };
  }
}
