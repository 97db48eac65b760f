import { type ReactNode, useEffect } from 'react';
import styles from './page.module.css';

type PageHeadProps = {
  /** The name or number of the record, or of the list. */
  title: string;
  status?: ReactNode;
  subtitle?: ReactNode;
  /** The one figure of the page. */
  figure?: ReactNode;
  actions?: ReactNode;
};

export function PageHead({ title, status, subtitle, figure, actions }: PageHeadProps): ReactNode {
  useEffect(() => {
    document.title = `${title} · Farthing`;
  }, [title]);
  return (
    <div className={styles.top}>
      <div className={styles.row}>
        <h1>
          <bdi>{title}</bdi>
        </h1>
        {status}
        {actions && <div className={styles.actions}>{actions}</div>}
      </div>
      {subtitle !== undefined && <p className={styles.subtitle}>{subtitle}</p>}
      {figure !== undefined && <div className={styles.figure}>{figure}</div>}
    </div>
  );
}

/** A part of a page with its heading; `hint` stands beside it, `end` at the right. */
export function Section({
  title,
  hint,
  end,
  children,
}: {
  title: string;
  hint?: ReactNode;
  end?: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <section className={styles.section} aria-label={title}>
      <div className={styles.heading}>
        <h2>{title}</h2>
        {hint !== undefined && <span className="label">{hint}</span>}
        {end !== undefined && <span className={styles.end}>{end}</span>}
      </div>
      {children}
    </section>
  );
}

/** A white sheet with a hairline. */
export function Sheet({ children, padded = false }: { children: ReactNode; padded?: boolean }): ReactNode {
  return <div className={`${styles.sheet} ${padded ? styles.padded : ''}`}>{children}</div>;
}

export type Fact = { readonly label: string; readonly value: ReactNode };

/** Facts of a record, one a row. */
export function Facts({ facts }: { facts: readonly Fact[] }): ReactNode {
  return (
    <dl className={styles.facts}>
      {facts.map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Two columns: the page, and a narrower one. They stand below each other where there is no room. */
export function Columns({ children, side }: { children: ReactNode; side: ReactNode }): ReactNode {
  return (
    <div className={styles.columns}>
      <div className={styles.wide}>{children}</div>
      <div className={styles.wide}>{side}</div>
    </div>
  );
}
