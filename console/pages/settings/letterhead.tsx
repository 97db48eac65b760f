import type { CSSProperties, ReactNode } from 'react';
import { useTexts } from '../../texts/texts.ts';
import { COMPANY_TEXTS } from './company-texts.ts';
import { type CompanyDraft, listAddressLines } from './setting-records.ts';
import styles from './settings.module.css';

const COLOUR = /^#[0-9a-f]{6}$/i;

/** The seller as documents will name it. The layout is that of the PDF alone. */
export function Letterhead({ draft }: { draft: CompanyDraft }): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  const { has_seller, logo, color } = draft;
  const name = has_seller ? draft.seller_name : draft.name;
  const lines = has_seller ? draft.seller_lines.split('\n') : listAddressLines(draft);
  const contacts = has_seller ? [draft.seller_email, draft.website] : [draft.email];
  const style = COLOUR.test(color) ? ({ '--letter-colour': color } as CSSProperties) : undefined;
  return (
    <section className={styles.letter} style={style} aria-label={texts.letterhead}>
      {logo !== null && (
        <div>
          <img src={logo} alt={texts.logo} />
        </div>
      )}
      <strong>{name === '' ? texts.noName : <bdi>{name}</bdi>}</strong>
      {[...lines, ...contacts]
        .filter((line) => line.trim() !== '')
        .map((line) => (
          <bdi key={line}>{line}</bdi>
        ))}
      {has_seller && draft.tax_id !== '' && (
        <span className="muted">
          {texts.tax_id} <bdi>{draft.tax_id}</bdi>
        </span>
      )}
    </section>
  );
}
