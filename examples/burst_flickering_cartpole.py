"""Does memory help when blanks come in bursts, as a failing sensor's do? Both arms, by hand.

The share of blank frames stays `--flicker-prob`; a blank run lasts `--burst-len` frames on average. Visible runs then
last burst_len x (1 - flicker_prob) / flicker_prob frames, and settings for which that is under 1 are refused.

Run: python examples/burst_flickering_cartpole.py [--arm lstm] [--burst-len 4] [--help]
"""

from hand_written_loop import arguments, main

if __name__ == "__main__":
    parser = arguments("Train with and without memory on a cart-pole whose frames are blanked in bursts.")
    parser.add_argument("--burst-len", type=float, default=4.0, help="mean length of a blank run, in frames")
    args = parser.parse_args()
    main(parser, args, burst_len=args.burst_len)
