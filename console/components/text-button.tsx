import type { ButtonHTMLAttributes, ReactNode } from 'react';
import styles from './text-button.module.css';

/** A button in the middle of words: underlined, as a link is. */
export function TextButton({ className = '', ...rest }: ButtonHTMLAttributes<HTMLButtonElement>): ReactNode {
  return <button type="button" className={`${styles.text} ${className}`} {...rest} />;
}
