/** Icons, 16 × 16, in the colour of the surrounding text. */
import type { ReactNode } from "react";

const PATHS = {
  overview: <path d="M2.5 2.5h4.5v5.5H2.5zM9 2.5h4.5v3H9zM9 7.5h4.5v6H9zM2.5 10h4.5v3.5H2.5z" />,
  schedules: <path d="M3 3.5h10v10H3zM3 6.5h10M5.5 2v3M10.5 2v3" />,
  runs: <path d="M2.5 4h11M2.5 8h11M2.5 12h7" />,
  timeline: <path d="M2.5 4h6M5.5 8h8M2.5 12h4" strokeWidth="2.25" />,
  errors: <path d="M8 2.5 14.2 13H1.8zM8 6.5v3M8 11.2v.3" />,
  workers: <path d="M4 4h8v8H4zM6.5 1.5V4M9.5 1.5V4M6.5 12v2.5M9.5 12v2.5M1.5 6.5H4M1.5 9.5H4M12 6.5h2.5M12 9.5h2.5" />,
  queues: <path d="M2.5 3h11v3h-11zM2.5 6.5h11v3h-11zM2.5 10h11v3h-11z" />,
  jobs: <path d="M2.5 5h11v8.5h-11zM5.5 5V2.5h5V5M2.5 8.5h11" />,
  audit: <path d="M3.5 2h9v12h-9zM6 5.5h4M6 8h4M6 10.5h2.5" />,
  alerts: <path d="M3.5 11.5h9l-1.2-1.8V7a3.3 3.3 0 0 0-6.6 0v2.7zM6.8 13.5h2.4" />,
  access: <path d="M6 7.2a2.6 2.6 0 1 0-.01 0zM6 7.2v6.3M6 10.5h2.5M6 12.8h2" transform="translate(1.5 0)" />,
  scopes: <path d="M2.5 13.5v-8h5v8M7.5 13.5v-11h6v11M1.5 13.5h13M9.5 5h2M9.5 8h2M9.5 11h2M4.5 8h1M4.5 10.5h1" />,
  search: <path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3 3" />,
  close: <path d="M4 4l8 8M12 4l-8 8" />,
  copy: <path d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />,
  download: <path d="M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10" />,
  upcoming: <path d="M8 2.2a5.8 5.8 0 1 0 5.8 5.8M8 5v3l2 1.5M10.5 2.5l3.2-.3-.3 3.2M13.5 2.4 10 6" />,
  columns: <path d="M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10" />,
  star: <path d="m8 2 1.8 3.8 4.2.6-3 2.9.7 4.2L8 11.5l-3.7 2 .7-4.2-3-2.9 4.2-.6z" />,
  check: <path d="M3 8.5l3.5 3.5L13 4.5" />,
  sun: <path d="M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M12.8 3.2l-1.1 1.1M4.3 11.7l-1.1 1.1" />,
  moon: <path d="M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z" />,
  system: <path d="M2 3h12v8H2zM5.5 13.5h5" />,
  globe: <path d="M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM1.8 8h12.4M8 1.8c-3.8 4-3.8 8.4 0 12.4 3.8-4 3.8-8.4 0-12.4z" />,
  clock: <path d="M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM8 4.5V8l2.5 1.5" />,
  person: <path d="M8 2.2a2.6 2.6 0 1 0 0 5.2 2.6 2.6 0 0 0 0-5.2zM2.8 13.8c.4-3 2.4-4.6 5.2-4.6s4.8 1.6 5.2 4.6" />,
  help: <path d="M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM6.2 6.2a1.9 1.9 0 1 1 2.6 1.9c-.6.3-.8.6-.8 1.2M8 11.2v.4" />,
  retry: <path d="M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3" />,
  cancel: <path d="M4 4h8v8H4z" />,
  plus: <path d="M8 3v10M3 8h10" />,
  play: <path d="M4.5 2.5v11l9-5.5z" />,
  pause: <path d="M5 3v10M11 3v10" strokeWidth="2.25" />,
  edit: <path d="M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2z" />,
  trash: <path d="M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9" />,
  chevron: <path d="M5 6.5l3 3 3-3" />,
  left: <path d="M13 8H3M7 4L3 8l4 4" />,
  more: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2.25" />,
  right: <path d="M6 4l4 4-4 4" />,
  chart: <path d="M2.5 13.5h11M4.5 11V7M8 11V3.5M11.5 11V8.5" />,
  table: <path d="M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M6.5 3v10" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      {PATHS[name]}
    </svg>
  );
}
